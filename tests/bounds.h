// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The one table of tolerances and derived constants of the tests. No other file of tests/ holds a
 * floating-point tolerance. The bound of the float32 reference is not here: it is evaluated for
 * every element by attention_bound_f64 (spec/numerics.md, "Bound of the reference").
 */
#ifndef TESTS_BOUNDS_H
#define TESTS_BOUNDS_H

/** Unit roundoff of float64. */
#define TEST_UNIT_F64 0x1p-53

/**
 * gamma_n = n u / (1 - n u) for float64: what n roundings can do to a product of n factors
 * (1 + delta), |delta| <= u (Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1).
 *
 * @param roundings n, far below 2^53
 * @return gamma_n
 */
static inline double test_gamma_f64(double roundings) {
    return roundings * TEST_UNIT_F64 / (1.0 - roundings * TEST_UNIT_F64);
}

/**
 * Largest relative error of the libm's exp and log in float64. The C standard asks for nothing;
 * glibc documents 1 ulp, musl's is the same code. One ulp is at most 2 u; doubled to be safe.
 */
#define TEST_EXP_ERROR_F64 (4.0 * TEST_UNIT_F64)

/** Terms of second order in the bounds below are under 2^-30 of those of first order. */
#define TEST_SECOND_ORDER (1.0 + 0x1p-30)

/**
 * How far apart absorbed and expanded attention may be in float64 (gate P0-4), for one output.
 *
 * Each side errs by at most half of this. Score j errs by score_error at most, so its weight by
 * that plus exp's error, relatively. Numerator and denominator are sums over the tokens (a product
 * and an addition each): gamma of tokens + 2 together with the division. A value is a sum over the
 * latent columns, or, absorbed, the output is projected by one: gamma of latent + 1. All of it is
 * relative to weighted_size = sum_j p_j sum_l |W_uv[v][l]| |c_j[l]|.
 *
 * @param score_error   largest error of a score on either side
 * @param weighted_size as above
 * @param tokens        T
 * @param latent_dim    L
 * @return the bound
 */
static inline double test_absorption_bound_f64(double score_error, double weighted_size,
                                               double tokens, double latent_dim) {
    double weight = score_error + TEST_EXP_ERROR_F64;
    return 2.0 * TEST_SECOND_ORDER * weighted_size *
           (2.0 * (weight + test_gamma_f64(tokens + 2.0)) + test_gamma_f64(latent_dim + 1.0));
}

/**
 * The same for lse = m + log(sum): the sum errs by a weight's error and gamma of tokens,
 * relatively, the maximum by score_error; then the logarithm and the addition round.
 *
 * @param score_error largest error of a score on either side
 * @param lse         lse
 * @param log_sum     log(sum) of weights relative to the maximum
 * @param tokens      T
 * @return the bound
 */
static inline double test_absorption_lse_bound_f64(double score_error, double lse, double log_sum,
                                                   double tokens) {
    double sum = score_error + TEST_EXP_ERROR_F64 + test_gamma_f64(tokens);
    double magnitude = (lse < 0.0 ? -lse : lse) + log_sum;
    return 2.0 * TEST_SECOND_ORDER * (sum + score_error + 2.0 * TEST_EXP_ERROR_F64 * magnitude);
}

/** A change of one weight of kv_b_proj that gate P0-4 must notice: 2^-20 of the values' size. */
#define TEST_NOTICEABLE_CHANGE 0x1p-20

/*
 * Truth against the reference's bound. The truth errs too, by at most gamma_n of float64 times the
 * sums that the bound multiplies with gamma_m of float32. With n <= 2^18 tokens serially and
 * m >= 2 that is a share of n 2^-53 / (m 2^-24) <= 2^-12 of the bound. Tests do not add it: the
 * condition that they check is stricter than the one derived.
 */

/**
 * A problem whose softmax is flat would hide an error in the scores: every token then has the
 * same weight. Scores with deviation 3 around 0 have lse close to log(n) + 4.5; flat ones have
 * log(n). A benign problem must have a row with lse >= log(n) + this.
 */
#define TEST_MIN_SPREAD 1.0

/**
 * A problem whose output is all but zero would hide an error in the output. Values have deviation
 * 1, so some element of some row is above this in every benign problem.
 */
#define TEST_MIN_OUTPUT 0.05

/** log2(e), correctly rounded to float64. */
#define TEST_LOG2_E 0x1.71547652b82fep+0

/**
 * Visible-token times head times row products that one case of the emulated naive kernel may
 * cost: about 3 us each, so 3 seconds.
 */
#define TEST_EMULATED_WORK 1000000
/** The same for the reduced set: under AddressSanitizer a product costs about 15 us. */
#define TEST_EMULATED_WORK_SMALL 40000

/** Relative error of ex2.approx.ftz.f32 (PTX ISA), as spec/numerics.md takes it. */
#define TEST_EX2_ERROR 0x1p-22

/**
 * The lse of scores so far from zero that the logarithm of their number is lost, relative to it:
 * eight roundings and constants that are rounded.
 */
#define TEST_FAR_LSE 0x1p-21

/**
 * An output of two kinds of weights that bfloat16 has exactly, relative to it: a few roundings of
 * float32 and errors of ex2. Rounding the weight of that test to bfloat16 costs 2^-10.
 */
#define TEST_LEAD 0x1p-18

/** What FlashMLA's test of dense decoding asks for: o, absolute or relative. */
#define TEST_FLASHMLA_O 8e-4
/** See TEST_FLASHMLA_O. */
#define TEST_FLASHMLA_O_REL (2.01 / 128)
/** The same of lse. */
#define TEST_FLASHMLA_LSE 1e-6
/** See TEST_FLASHMLA_LSE. */
#define TEST_FLASHMLA_LSE_REL (8.01 / 65536)
/** And 1 - 2 x y / (x x + y y) of both, as vectors. */
#define TEST_FLASHMLA_COSINE 5e-6
/** What is added to an expected size there, so that it can be divided by. */
#define TEST_FLASHMLA_TINY 1e-6

/** Errors of ref_exp_f32 and ref_log_f32: the bound of the reference takes 1 ulp for both. */
#define TEST_EXP_ULP 1.0
/** See TEST_EXP_ULP. */
#define TEST_LOG_ULP 1.0

/**
 * Merging P parts (eq-merge), u = 2^-24: a weight errs by the rounding of its argument, whose size
 * is below 32 in these tests, and 2 u of exp, so by 34 u; a term passes its product and P
 * additions; so does the sum of the weights; and the division. 34 + (P + 1) + 34 + P + 1 roundings.
 */
#define TEST_MERGE_O(parts, size) ((2.0 * (parts) + 71.0) * 0x1p-24 * (size))
/** The log-sum-exp of a merge: the error of the sum, of log, and of the last addition. */
#define TEST_MERGE_LSE(lse) ((40.0 + 2.0 + 2.0 * fabs(lse)) * 0x1p-24 + 8.0 * 0x1p-24)

/**
 * Gap of float64 scores at the budget's boundary below which a draft tree may hold other nodes than
 * in float64 (eq-draft-tie). A sum of L values of one sign passes L - 1 roundings, so it errs by
 * gamma_(L-1) of its size, and two sums can change places if they differ by less than twice that:
 * (L - 1) 2^-23 |w| up to terms of second order, which the missing 2^-23 |w| covers.
 */
#define TEST_DRAFT_TIE(positions, score) ((positions)*0x1p-23 * fabs(score))

/**
 * Most that the probabilities of seeded marginals can sum to: the float32 sum of K weights errs by
 * gamma_K, a weight by 2 u, the logarithm of the sum and its subtraction by 3 u of less than 20.
 */
#define TEST_MARGINAL_MASS(ranks) (1.0 + ((ranks) + 62.0) * 0x1p-24)

/**
 * A value that a chi-square variable exceeds with a probability below exp(-t), for t = 14 below one
 * in a million: dof + 2 sqrt(dof t) + 2 t (Laurent and Massart, Annals of Statistics 28, 2000,
 * lemma 1).
 */
#define TEST_CHI_SQUARE(dof) ((dof) + 2.0 * sqrt(14.0 * (dof)) + 28.0)
/** Draws that a cell must expect for its count to be close to normal: the customary number. */
#define TEST_CHI_SQUARE_EXPECTED 5.0

#endif
