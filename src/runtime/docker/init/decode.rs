//! Reads a request.

use super::request::{Copy, Mount, Network, Request};

/// What is still to be read.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn text(&mut self) -> Option<String> {
        let (text, rest) = self.0.split_once('\0')?;
        self.0 = rest;
        Some(text.to_owned())
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.text()?.parse().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        self.number::<u64>().map(|number| number != 0)
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count: u64 = self.number()?;
        (0..count).map(|_| one(self)).collect()
    }

    #[expect(clippy::option_option, reason = "nothing is not the same as nothing readable")]
    fn maybe<T>(&mut self, one: impl FnMut(&mut Self) -> Option<T>) -> Option<Option<T>> {
        self.list(one).map(|list| list.into_iter().next())
    }
}

impl Request {
    /// `None` for anything but a whole request.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(std::str::from_utf8(bytes).ok()?);
        let own = Self {
            directory: from.flag()?,
            argv: from.list(Reader::text)?,
            env: from.list(Reader::text)?,
            working_dir: from.text()?,
            uid: from.number()?,
            gid: from.number()?,
            hostname: from.text()?,
            network: match from.number::<u64>()? {
                0 => Network::BlackHole,
                1 => Network::BlackHoleV4,
                2 => Network::Loopback,
                3 => Network::Host,
                _ => return None,
            },
            account: from.maybe(|from| Some((from.text()?, from.text()?)))?,
            copies: from.list(Copy::decode)?,
            copy_size: from.maybe(Reader::number)?,
            read_only: from.list(Reader::text)?,
            mounts: from.list(Mount::decode)?,
            hosts: from.text()?,
            resolv_conf: from.text()?,
            processors: from.list(Reader::number)?,
            open_files: (from.number()?, from.number()?),
            file_size: from.maybe(Reader::number)?,
            filters: from.list(Reader::number)?,
            mark: from.text()?,
        };
        from.0.is_empty().then_some(own)
    }
}

impl Copy {
    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            path: from.text()?,
            descending: from.maybe(Reader::flag)?,
            owner: from.maybe(|from| Some((from.number()?, from.number()?)))?,
            in_place: from.list(Reader::text)?,
        })
    }
}

impl Mount {
    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { target: from.text()?, writable: from.flag()?, folder: from.flag()? })
    }
}
