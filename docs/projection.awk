# SPDX-License-Identifier: Apache-2.0
# The page of a projection, from the file that bench/roofline.sh writes: a line a point and card.
function value(name,    at) {
    if (!match($0, "\"" name "\": *[^,}]*")) {
        return ""
    }
    at = substr($0, RSTART, RLENGTH)
    sub(/^[^:]*: */, "", at)
    gsub(/"/, "", at)
    return at
}
/"fitted_on"/ {
    gpu = value("gpu")
    rows = value("rows")
    day = value("date")
    commit = value("commit")
}
/"residual"/ { worst = value("worst"); rms = value("rms") }
/"constants"/ {
    constants = "call " value("call_us") " us, item " value("item_us") " us, key tile " \
        value("tile_clocks") " clocks more than its products and rows, products " \
        value("product") " times their time more for each 16 rows, partial outputs " \
        value("combine") " times their time at 64 bytes a clock"
}
/^    "/ {
    text = $0
    sub(/^    "/, "", text)
    sub(/"[],]*$/, "", text)
    assumption[++assumptions] = text
}
/"card"/ {
    card = value("card")
    point = "(" value("B") "," value("H") "," value("Q") "," value("N") ")"
    if (!(card in seen)) { seen[card] = 1; cards[++card_count] = card }
    if (!(point in known)) { known[point] = 1; points[++point_count] = point }
    us[point SUBSEP card] = value("us") " (" value("floor_us") ")"
}
END {
    if (point_count == 0 || card_count == 0 || assumptions == 0 || gpu == "") exit 1
    print "# Projection for sm_120 {#projection}\n"
    print "**Nothing on this page was measured on the cards that it names.** It is what a model of"
    print "the flash kernel (`bench/roofline_model.h`), fitted to measurements of one " gpu ","
    print "says of them: a hint what to expect, until their owners measure. Default mode, random"
    print "slots, tree mask, page size 1. Where gathers or products limit, the model takes their"
    print "full rates, so it is nearer to the best than to a forecast.\n"
    printf "Fitted to %d points of %s, measured on %s, commit `%s`: %s. ", rows, gpu, day, \
        substr(commit, 1, 12), constants
    printf "There the model is off by %.1f %% at most, ", 100 * worst
    printf "%.1f %% in the root of the mean square.\n\n", 100 * rms
    print "It assumes that:\n"
    for (k = 1; k <= assumptions; k++) print "- " assumption[k] (k < assumptions ? ";" : ".")
    print "\nRTX PRO 6000: 188 multiprocessors, 1,792 GB/s, 504 TFLOP/s of mma.sync on bfloat16."
    print "RTX 5090: 170 multiprocessors, 1,792 GB/s, 228 TFLOP/s, half of the products a clock."
    print "The floor takes the full rate of the memory at every size; floors of measurements take"
    print "the gather rate that was measured at that size."
    printf "\nProjected microseconds, in brackets the projected floor:\n\n| (B, H, Q, N) |"
    for (c = 1; c <= card_count; c++) printf " %s, projected |", cards[c]
    printf "\n|---|"
    for (c = 1; c <= card_count; c++) printf "---|"
    printf "\n"
    for (k = 1; k <= point_count; k++) {
        printf "| %s |", points[k]
        for (c = 1; c <= card_count; c++) printf " %s |", us[points[k] SUBSEP cards[c]]
        printf "\n"
    }
}
