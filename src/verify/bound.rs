//! The exact one-sided upper confidence bound of a failure rate (Clopper and Pearson, 1934).

/// Steps of the bisection: more than the bits of a double's fraction.
const STEPS: u32 = 64;
/// Digits that are kept: the last bits of logarithms may differ between machines, and verdicts are compared
/// byte by byte.
const DIGITS: f64 = 1e9;

/// The largest failure rate under which `failures` or fewer of `runs` would still be seen with
/// a probability of `1 - confidence`, rounded up to nine digits. One when nothing was run or everything failed.
///
/// `confidence` must lie strictly between 0 and 1; 0.95 is what hallmark prints.
pub fn upper_bound(runs: u64, failures: u64, confidence: f64) -> f64 {
    if failures >= runs {
        return 1.0;
    }
    let alpha = 1.0 - confidence;
    let bound = if failures == 0 {
        1.0 - alpha.powf(1.0 / count(runs))
    } else {
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if at_most(runs, failures, middle) > alpha {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    };
    ((bound * DIGITS).ceil() / DIGITS).min(1.0)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of runs are far below 2^53")]
fn count(value: u64) -> f64 {
    value as f64
}

/// The probability of at most `failures` of `runs` at rate `p`, summed in logarithms.
fn at_most(runs: u64, failures: u64, p: f64) -> f64 {
    let (hit, miss) = (p.ln(), (-p).ln_1p());
    let mut choose = 0.0;
    let mut sum = 0.0;
    for k in 0..=failures {
        if k > 0 {
            choose += (count(runs - k + 1) / count(k)).ln();
        }
        sum += (choose + count(k) * hit + count(runs - k) * miss).exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meets_known_bounds() {
        // No failure: the closed form; design's 14, 29 and 59 runs for 20, 10 and 5 %.
        for (runs, limit) in [(14, 0.2), (29, 0.1), (59, 0.05)] {
            assert!(upper_bound(runs, 0, 0.95) <= limit);
            assert!(upper_bound(runs - 1, 0, 0.95) > limit);
        }
        // The quantile of Beta(k + 1, n - k) at 0.95, from tables of the F distribution:
        // 1 of 10 -> 0.39416, 2 of 20 -> 0.28262, 5 of 10 -> 0.77756.
        for (runs, failures, expected) in
            [(10, 1, 0.39416), (20, 2, 0.28262), (10, 5, 0.77756), (3, 0, 0.63160)]
        {
            let bound = upper_bound(runs, failures, 0.95);
            assert!((bound - expected).abs() < 1e-5, "{failures} of {runs}: {bound}");
        }
        assert!((upper_bound(0, 0, 0.95) - 1.0).abs() < f64::EPSILON);
        assert!((upper_bound(4, 4, 0.95) - 1.0).abs() < f64::EPSILON);
    }

    /// The binomial tail by exact integers: no logarithm, no floating point until the end.
    /// `p` is `numerator / 1024`.
    fn exact_at_most(runs: u32, failures: u32, numerator: u128) -> f64 {
        // Pascal's row, then a sum of integers over 1024^runs; 11 runs fit into 128 bits.
        let mut row = vec![1_u128];
        for _ in 0..runs {
            let mut next = vec![1];
            next.extend(row.windows(2).map(|pair| pair[0] + pair[1]));
            next.push(1);
            row = next;
        }
        let term = |k: u32| row[k as usize] * numerator.pow(k) * (1024 - numerator).pow(runs - k);
        let sum: u128 = (0..=failures).map(term).sum();
        #[expect(clippy::cast_precision_loss, reason = "a ratio to 15 digits is enough")]
        let ratio = sum as f64 / 1024_u128.pow(runs) as f64;
        ratio
    }

    proptest::proptest! {
        #[test]
        fn the_tail_is_the_exact_one(runs in 1_u32..=11, failures in 0_u32..11, numerator in 1_u128..1024) {
            proptest::prop_assume!(failures <= runs);
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let p = numerator as f64 / 1024.0;
            let exact = exact_at_most(runs, failures, numerator);
            let ours = at_most(u64::from(runs), u64::from(failures), p);
            proptest::prop_assert!((exact - ours).abs() < 1e-12, "{exact} {ours}");
        }

        #[test]
        fn the_bound_is_where_the_tail_is_five_percent(runs in 1_u32..=11, failures in 0_u32..11) {
            proptest::prop_assume!(failures < runs);
            let bound = upper_bound(u64::from(runs), u64::from(failures), 0.95);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0..=1024")]
            let below = ((bound * 1024.0).floor() as u128).min(1023);
            // The exact tail at the grid points around the bound lies on both sides of 5 %.
            proptest::prop_assert!(exact_at_most(runs, failures, below) >= 0.05 - 1e-9);
            proptest::prop_assert!(exact_at_most(runs, failures, below + 1) <= 0.05 + 1e-9);
        }

        #[test]
        fn more_failures_and_fewer_runs_bound_less(runs in 2_u64..400, failures in 0_u64..399) {
            proptest::prop_assume!(failures + 1 < runs);
            let bound = upper_bound(runs, failures, 0.95);
            proptest::prop_assert!(bound > count(failures) / count(runs));
            proptest::prop_assert!(bound < upper_bound(runs, failures + 1, 0.95));
            proptest::prop_assert!(bound < upper_bound(runs - 1, failures, 0.95));
        }
    }
}
