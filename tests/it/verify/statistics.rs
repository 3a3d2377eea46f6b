//! Bounds against another computation of them: the regularised incomplete beta function.

use hallmark::verify::upper_bound;
use proptest::prelude::*;
use statrs::function::beta::beta_reg;

proptest! {
    #[test]
    fn the_bound_is_the_quantile_of_a_beta_distribution(
        runs in 1_u64..5000,
        share in 0.0_f64..1.0,
        confidence in 0.5_f64..0.999,
    ) {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a small number"
        )]
        let failures = (runs as f64 * share * share) as u64;
        prop_assume!(failures < runs);
        let bound = upper_bound(runs, failures, confidence);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (a, b) = ((failures + 1) as f64, (runs - failures) as f64);
        // The bound is rounded up to nine digits: the distribution function passes the confidence between the two.
        let below = beta_reg(a, b, (bound - 2e-9).max(0.0));
        let above = beta_reg(a, b, (bound + 1e-9).min(1.0));
        prop_assert!(below <= confidence + 1e-9, "{bound} {below}");
        prop_assert!(above >= confidence - 1e-9, "{bound} {above}");
    }
}
