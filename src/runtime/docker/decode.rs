//! Reads what pid 1 reports.

use super::report::Report;

impl Report {
    /// Reads it; `None` unless it says how the command or the set-up ended.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let mut report = Self::default();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ')?;
            match word {
                "failed" => {
                    let (errno, doing) = rest.split_once(' ')?;
                    report.failed = Some((errno.parse().ok()?, doing.to_owned()));
                }
                "status" => report.status = Some(rest.parse().ok()?),
                "nanoseconds" => report.nanoseconds = rest.parse().ok()?,
                "attempts" => {
                    let (packets, lookups) = rest.split_once(' ')?;
                    report.attempts = Some((packets.parse().ok()?, lookups.parse().ok()?));
                }
                "oom-kills" => report.oom_kills = Some(rest.parse().ok()?),
                "cpu" => report.cpu = Some(rest.parse().ok()?),
                "peak" => report.peak_memory = Some(rest.parse().ok()?),
                "gap" => report.gaps.push(rest.to_owned()),
                _ => return None,
            }
        }
        (report.failed.is_some() || report.status.is_some()).then_some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_over_whole_or_not_at_all() {
        let ended = Report {
            status: Some(-1),
            nanoseconds: 5,
            attempts: Some((1, 2)),
            oom_kills: Some(0),
            cpu: Some(9),
            peak_memory: None,
            gaps: vec!["black-hole".to_owned()],
            failed: None,
        };
        let failed = Report { failed: Some((13, "mount /x\ny".to_owned())), ..Report::default() };
        assert_eq!(Report::decode(&ended.encode()), Some(ended));
        let expected = Report { failed: Some((13, "mount /x y".to_owned())), ..Report::default() };
        assert_eq!(Report::decode(&failed.encode()), Some(expected));
        for bad in ["", "cpu 5\n", "status\n", "status x\n", "status 0\nmore 1\n"] {
            assert_eq!(Report::decode(bad), None, "{bad:?}");
        }
    }
}
