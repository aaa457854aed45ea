// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Drawing of charts as SVG.
 */
#include "chart.h"

#include <math.h>
#include <string.h>

/** Size of a chart of lines, and the corners of its plot. */
enum { WIDTH = 760, HEIGHT = 400, LEFT = 66, RIGHT = 740, TOP = 74, BOTTOM = 346 };
/** The same of bars, whose height follows from their number. */
enum { BAR_LEFT = 134, BAR_RIGHT = 690, BAR_TOP = 58, BAR = 9, GAP = 10 };

/** A range of values on a stretch of the drawing. */
struct axis {
    double low;
    double high;
    double from;
    double to;
    int logarithmic;
};

static double place(const struct axis *a, double value) {
    double part = a->logarithmic ? log(value / a->low) / log(a->high / a->low)
                                 : (value - a->low) / (a->high - a->low);
    return a->from + part * (a->to - a->from);
}

/** A number as people write it: 4k, 1M for powers of two. */
static void short_number(double value, char *text, size_t bytes) {
    if (value >= 1048576.0 && fmod(value, 1048576.0) == 0.0) {
        snprintf(text, bytes, "%gM", value / 1048576.0);
    } else if (value >= 1024.0 && fmod(value, 1024.0) == 0.0) {
        snprintf(text, bytes, "%gk", value / 1024.0);
    } else if (value >= 1000.0 && fmod(value, 1000.0) == 0.0) {
        snprintf(text, bytes, "%g,%03d", floor(value / 1000.0), 0);
    } else {
        snprintf(text, bytes, "%g", value);
    }
}

void chart_put_text(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

static void begin_svg(FILE *out, const char *title, int width, int height) {
    fprintf(out,
            "<div class=\"kdtr-chart\">\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "
            "%d %d\" width=\"%d\" height=\"%d\" role=\"img\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<title>",
            width, height, width, height);
    chart_put_text(out, title);
    fputs("</title>\n<text x=\"12\" y=\"20\" font-size=\"14\" font-weight=\"bold\" "
          "fill=\"currentColor\">",
          out);
    chart_put_text(out, title);
    fputs("</text>\n", out);
}

static void end_svg(FILE *out) {
    fputs("</svg>\n</div>\n", out);
}

static void text_at(FILE *out, double x, double y, const char *anchor, const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"currentColor\">", x, y,
            anchor);
    chart_put_text(out, text);
    fputs("</text>\n", out);
}

static void grid_line(FILE *out, double x1, double y1, double x2, double y2, double opacity) {
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"currentColor\" "
            "stroke-opacity=\"%.2f\"/>\n",
            x1, y1, x2, y2, opacity);
}

/** The step of a linear axis: 1, 2 or 5 times a power of ten, for about five steps. */
static double linear_step(double range) {
    double power = pow(10.0, floor(log10(range / 5.0)));
    double part = range / 5.0 / power;
    return power * (part > 5.0 ? 10.0 : part > 2.0 ? 5.0 : part > 1.0 ? 2.0 : 1.0);
}

/** A tick of the vertical axis. */
static void y_tick(FILE *out, const struct axis *y, double value) {
    char text[32];
    double at = place(y, value);
    snprintf(text, sizeof text, "%.10g", value);
    grid_line(out, LEFT, at, RIGHT, at, 0.15);
    text_at(out, LEFT - 6, at + 4, "end", text);
}

static void y_ticks(FILE *out, const struct axis *y) {
    if (!y->logarithmic) {
        double step = linear_step(y->high - y->low);
        for (int i = 0; y->low + i * step <= y->high * 1.0001; i++) {
            y_tick(out, y, y->low + i * step);
        }
        return;
    }
    static const double digits[] = {1.0, 2.0, 5.0};
    for (int power = -9; power <= 12; power++) {
        for (int d = 0; d < 3; d++) {
            double value = digits[d] * pow(10.0, power);
            if (value >= y->low * 0.9999 && value <= y->high * 1.0001) {
                y_tick(out, y, value);
            }
        }
    }
}

/** Ticks of the horizontal axis: the values of all series, if they are not too near. */
static void x_ticks(FILE *out, const struct axis *x, const struct chart_lines *lines) {
    double last = -1e9;
    for (;;) {
        double next = INFINITY;
        for (int32_t s = 0; s < lines->count; s++) {
            for (int32_t i = 0; i < lines->series[s].count; i++) {
                double at = lines->series[s].x[i];
                if (place(x, at) > last + 36.0 && at < next) {
                    next = at;
                }
            }
        }
        if (isinf(next)) {
            return;
        }
        char text[32];
        last = place(x, next);
        short_number(next, text, sizeof text);
        grid_line(out, last, TOP, last, BOTTOM, 0.08);
        text_at(out, last, BOTTOM + 17, "middle", text);
    }
}

/** The ranges that hold all points. */
static void ranges(const struct chart_lines *lines, struct axis *x, struct axis *y) {
    *x = (struct axis){INFINITY, 0.0, LEFT + 14, RIGHT - 14, 1};
    *y = (struct axis){INFINITY, 0.0, BOTTOM, TOP, lines->log_y};
    for (int32_t s = 0; s < lines->count; s++) {
        for (int32_t i = 0; i < lines->series[s].count; i++) {
            x->low = fmin(x->low, lines->series[s].x[i]);
            x->high = fmax(x->high, lines->series[s].x[i]);
            y->low = fmin(y->low, lines->series[s].y[i]);
            y->high = fmax(y->high, lines->series[s].y[i]);
        }
    }
    if (lines->log_y) {
        y->low /= 1.25;
        y->high *= 1.25;
    } else {
        y->low = 0.0;
        y->high = lines->y_top > 0.0 ? lines->y_top : y->high * 1.05;
    }
    x->high = x->high > x->low ? x->high : 2.0 * x->low;
}

static void draw_series(FILE *out, const struct chart_series *s, const struct axis *x,
                        const struct axis *y) {
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", s->colour,
            s->dashed ? " stroke-dasharray=\"6 4\"" : "");
    for (int32_t i = 0; i < s->count; i++) {
        fprintf(out, "%s%.1f,%.1f", i == 0 ? "" : " ", place(x, s->x[i]), place(y, s->y[i]));
    }
    fprintf(out, "\"/>\n");
    for (int32_t i = 0; i < s->count; i++) {
        fprintf(out,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s: %g at %g</title>"
                "</circle>\n",
                place(x, s->x[i]), place(y, s->y[i]), s->colour, s->label, s->y[i], s->x[i]);
    }
}

/** The legend, in as many lines as it needs; TOP leaves room for two. */
static void line_legend(FILE *out, const struct chart_lines *lines) {
    double at = 14.0;
    double y = 39.0;
    for (int32_t s = 0; s < lines->count; s++) {
        const struct chart_series *one = &lines->series[s];
        double width = 48.0 + 6.5 * (double)strlen(one->label);
        if (at + width > WIDTH) {
            at = 14.0;
            y += 17.0;
        }
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                "stroke-width=\"2\"%s/>\n",
                at, y, at + 24.0, y, one->colour, one->dashed ? " stroke-dasharray=\"6 4\"" : "");
        text_at(out, at + 30.0, y + 4.0, "start", one->label);
        at += width;
    }
}

void chart_draw_lines(FILE *out, const struct chart_lines *lines) {
    struct axis x;
    struct axis y;
    ranges(lines, &x, &y);
    begin_svg(out, lines->title, WIDTH, HEIGHT);
    line_legend(out, lines);
    y_ticks(out, &y);
    x_ticks(out, &x, lines);
    grid_line(out, LEFT, BOTTOM, RIGHT, BOTTOM, 0.6);
    grid_line(out, LEFT, TOP, LEFT, BOTTOM, 0.6);
    text_at(out, (LEFT + RIGHT) / 2.0, HEIGHT - 14, "middle", lines->x_title);
    fprintf(out,
            "<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\" "
            "fill=\"currentColor\">%s</text>\n",
            (TOP + BOTTOM) / 2.0, lines->y_title);
    for (int32_t s = 0; s < lines->count; s++) {
        draw_series(out, &lines->series[s], &x, &y);
    }
    end_svg(out);
}

/** The axis of bars. */
static struct axis bar_axis(double most) {
    return (struct axis){1.0, most * 1.1, BAR_LEFT, BAR_RIGHT, 1};
}

void chart_begin_bars(FILE *out, const char *title, const char *x_title, int32_t groups,
                      int32_t bars, double most) {
    struct axis x = bar_axis(most);
    int bottom = BAR_TOP + groups * (bars * BAR + GAP);
    begin_svg(out, title, WIDTH, bottom + 46);
    static const double digits[] = {1.0, 2.0, 5.0};
    for (int power = 0; power < 6; power++) {
        for (int d = 0; d < 3; d++) {
            double value = digits[d] * pow(10.0, power);
            if (value <= x.high) {
                char text[32];
                snprintf(text, sizeof text, "%g", value);
                grid_line(out, place(&x, value), BAR_TOP - 4, place(&x, value), bottom,
                          value > 1.0 ? 0.15 : 0.6);
                text_at(out, place(&x, value), bottom + 15, "middle", text);
            }
        }
    }
    text_at(out, (BAR_LEFT + BAR_RIGHT) / 2.0, bottom + 35, "middle", x_title);
}

void chart_draw_group(FILE *out, int32_t group, const char *name, const struct chart_bar *bars,
                      int32_t count, double most) {
    struct axis x = bar_axis(most);
    double top = BAR_TOP + group * (count * BAR + GAP) + GAP / 2.0;
    text_at(out, BAR_LEFT - 8, top + count * BAR / 2.0 + 4.0, "end", name);
    for (int32_t i = 0; i < count; i++) {
        if (bars[i].value > 0.0) {
            double end = place(&x, fmax(bars[i].value, 1.0));
            fprintf(out,
                    "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n"
                    "<text x=\"%.1f\" y=\"%.1f\" font-size=\"9\" fill=\"currentColor\">%s</text>\n",
                    BAR_LEFT, top + i * BAR, end - BAR_LEFT, BAR - 1, bars[i].colour, end + 4.0,
                    top + i * BAR + 7.5, bars[i].label);
        }
    }
}

void chart_end_bars(FILE *out, const char *const *labels, const char *const *colours,
                    int32_t count) {
    double at = 14.0;
    for (int32_t i = 0; i < count; i++) {
        fprintf(out, "<rect x=\"%.1f\" y=\"33\" width=\"14\" height=\"10\" fill=\"%s\"/>\n", at,
                colours[i]);
        text_at(out, at + 20.0, 42.0, "start", labels[i]);
        at += 40.0 + 6.3 * (double)strlen(labels[i]);
    }
    end_svg(out);
}
