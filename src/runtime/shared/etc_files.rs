//! What stands in the files that a container finds in place of the image's. Of the standard library alone: pid 1 of a
//! daemon's container has nothing else.

/// Where the C library looks for the number of processors.
pub(crate) const ONLINE: &str = "/sys/devices/system/cpu/online";

/// What the files are made of.
pub(crate) struct EtcFiles<'a> {
    pub(crate) hosts: &'a str,
    pub(crate) resolv_conf: &'a str,
    pub(crate) hostname: &'a str,
    /// Name and home of the user, where one is to be added.
    pub(crate) account: Option<(&'a str, &'a str)>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Numbers of the processors to be told of; empty for all, and where there is no /sys.
    pub(crate) processors: &'a [usize],
}

impl EtcFiles<'_> {
    /// Path and text of each; `read` gives the image's own text, nothing where it has no such file.
    pub(crate) fn contents(&self, read: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
        let mut files = vec![
            ("/etc/hosts", self.hosts.to_owned()),
            ("/etc/resolv.conf", self.resolv_conf.to_owned()),
            ("/etc/hostname", format!("{}\n", self.hostname)),
        ];
        if let Some((name, home)) = self.account {
            let (uid, gid) = (self.uid, self.gid);
            let user = format!("{name}:x:{uid}:{gid}::{home}:/bin/sh\n");
            for (target, id, line) in
                [("/etc/passwd", uid, user), ("/etc/group", gid, format!("{name}:x:{gid}:\n"))]
            {
                // An image without the file has no users either.
                files.extend(with_line(read(target), id, &line).map(|text| (target, text)));
            }
        }
        if !self.processors.is_empty() {
            let list: Vec<String> = self.processors.iter().map(ToString::to_string).collect();
            files.push((ONLINE, format!("{}\n", list.join(","))));
        }
        files
    }
}

/// The text with a line for `id` at its end, unless it has one.
fn with_line(mut text: String, id: u32, line: &str) -> Option<String> {
    let id = id.to_string();
    if text.lines().any(|line| line.split(':').nth(2) == Some(&id)) {
        return None;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_added_once() {
        let add = |text: &str| with_line(text.to_owned(), 1000, "me:x:1000:\n");
        assert_eq!(add("root:x:0:\n").as_deref(), Some("root:x:0:\nme:x:1000:\n"));
        assert_eq!(add("root:x:0:").as_deref(), Some("root:x:0:\nme:x:1000:\n"));
        assert_eq!(add("").as_deref(), Some("me:x:1000:\n"));
        assert_eq!(add("root:x:0:\nyou:x:1000:\n"), None);
    }
}
