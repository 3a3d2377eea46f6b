//! Writes what pid 1 is asked.

use std::fmt::Write as _;

use super::request::{Copy, Request};

/// What is written so far.
struct Writer(String);

impl Writer {
    fn text(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\0');
    }

    fn number(&mut self, number: u64) {
        let _ = write!(self.0, "{number}\0");
    }

    fn list<T>(&mut self, items: &[T], mut one: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            one(self, item);
        }
    }

    fn maybe<T>(&mut self, item: Option<&T>, mut one: impl FnMut(&mut Self, &T)) {
        self.list(item.as_slice(), |writer, item| one(writer, item));
    }
}

impl Request {
    /// As pid 1 reads it.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Writer(String::new());
        to.number(self.directory.into());
        to.list(&self.argv, |to, text| to.text(text));
        to.list(&self.env, |to, text| to.text(text));
        to.text(&self.working_dir);
        to.number(self.uid.into());
        to.number(self.gid.into());
        to.text(&self.hostname);
        to.number(self.network as u64);
        to.maybe(self.account.as_ref(), |to, (name, home)| {
            to.text(name);
            to.text(home);
        });
        to.list(&self.copies, |to, copy| copy.encode(to));
        to.maybe(self.copy_size.as_ref(), |to, size| to.number(*size));
        to.list(&self.read_only, |to, text| to.text(text));
        to.list(&self.mounts, |to, mount| {
            to.text(&mount.target);
            to.number(mount.writable.into());
            to.number(mount.folder.into());
        });
        to.text(&self.hosts);
        to.text(&self.resolv_conf);
        to.list(&self.processors, |to, number| to.number(*number as u64));
        to.number(self.open_files.0);
        to.number(self.open_files.1);
        to.maybe(self.file_size.as_ref(), |to, size| to.number(*size));
        to.list(&self.filters, |to, size| to.number(*size as u64));
        to.text(&self.mark);
        to.0.into_bytes()
    }
}

impl Copy {
    fn encode(&self, to: &mut Writer) {
        to.text(&self.path);
        to.maybe(self.descending.as_ref(), |to, order| to.number((*order).into()));
        to.maybe(self.owner.as_ref(), |to, (uid, gid)| {
            to.number((*uid).into());
            to.number((*gid).into());
        });
        to.list(&self.in_place, |to, text| to.text(text));
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::{Mount, Network};
    use super::*;

    #[test]
    fn a_request_comes_over_whole_or_not_at_all() {
        let text = |text: &str| text.to_owned();
        let full = Request {
            directory: true,
            argv: vec![text("sh"), text("-c"), text("a\nb"), String::new()],
            env: vec![text("A=b=c")],
            working_dir: text("/x y"),
            uid: u32::MAX,
            gid: 7,
            hostname: text("box"),
            network: Network::Loopback,
            account: Some((text("me"), text("/home"))),
            copies: vec![
                Copy {
                    path: text("/testbed"),
                    descending: Some(true),
                    owner: Some((1, 2)),
                    in_place: vec![text(".git")],
                },
                Copy::default(),
            ],
            copy_size: Some(1 << 40),
            read_only: vec![text("/root")],
            mounts: vec![Mount { target: text("/m"), writable: true, folder: false }],
            hosts: text("127.0.0.1\tlocalhost\n"),
            resolv_conf: String::new(),
            processors: vec![3, 1],
            open_files: (1, u64::MAX),
            file_size: None,
            filters: vec![8, 16],
            mark: text("abc"),
        };
        for request in [Request::default(), full] {
            let bytes = request.encode();
            assert_eq!(Request::decode(&bytes), Some(request));
            assert_eq!(Request::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Request::decode(&[&bytes[..], b"\0"].concat()), None);
        }
    }
}
