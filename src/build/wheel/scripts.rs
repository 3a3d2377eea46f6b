//! Scripts: those made from entry points, and those of `.data/scripts` that ask for the interpreter.

/// A console or GUI script, from `entry_points.txt`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryPoint {
    /// File name of the script.
    pub(crate) name: String,
    /// Module to import.
    pub(crate) module: String,
    /// Object to call, dotted.
    pub(crate) function: String,
}

/// The console and GUI scripts of an `entry_points.txt`, sorted by name.
pub(crate) fn parse_entry_points(text: &str) -> Result<Vec<EntryPoint>, String> {
    let mut points = Vec::new();
    let mut wanted = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            wanted = matches!(section.trim(), "console_scripts" | "gui_scripts");
            continue;
        }
        if !wanted {
            continue;
        }
        let bad = || format!("the entry point `{line}` is not `name = module:object`");
        let (name, object) = line.split_once('=').ok_or_else(bad)?;
        // Extras of an entry point are part of the old form and are ignored, as the specification says.
        let object = object.split('[').next().unwrap_or_default().trim();
        let (module, function) = object.split_once(':').ok_or_else(bad)?;
        let point = EntryPoint {
            name: name.trim().to_owned(),
            module: module.trim().to_owned(),
            function: function.trim().to_owned(),
        };
        if !is_file_name(&point.name) || !is_dotted(&point.module) || !is_dotted(&point.function) {
            return Err(bad());
        }
        points.push(point);
    }
    points.sort();
    if let Some(pair) =
        points.windows(2).find(|pair| pair[0].name == pair[1].name && pair[0] != pair[1])
    {
        return Err(format!("two entry points make the script `{}`", pair[0].name));
    }
    points.dedup();
    Ok(points)
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0', '\n', '\\'])
}

fn is_dotted(path: &str) -> bool {
    path.split('.').all(|part| {
        !part.is_empty()
            && !part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c == '_' || c.is_alphanumeric())
    })
}

/// The script that calls an entry point.
pub(crate) fn entry_point_script(point: &EntryPoint, python: &str) -> String {
    let EntryPoint { module, function, .. } = point;
    let import = function.split('.').next().unwrap_or(function);
    format!(
        "#!{python}\n\
         import sys\n\
         from {module} import {import}\n\
         if __name__ == \"__main__\":\n    \
             sys.exit({function}())\n"
    )
}

/// The first line of a `.data/scripts` file that asks for the interpreter, replaced; `None` where it does not ask.
pub(crate) fn rewrite_shebang(contents: &[u8], python: &str) -> Option<Vec<u8>> {
    let rest = contents.strip_prefix(b"#!python")?;
    let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
    let mut out = format!("#!{python}\n").into_bytes();
    out.extend_from_slice(&rest[end..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_become_scripts() {
        let text = "# c\n[pytest11]\nx = y\n\n[console_scripts]\nb=m.n:C.run [extra]\na = m:main\n[gui_scripts]\ng = m:gui\n";
        let points = parse_entry_points(text).unwrap();
        let names: Vec<_> = points.iter().map(|point| point.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "g"]);
        assert_eq!(
            entry_point_script(&points[1], "/usr/bin/python3"),
            "#!/usr/bin/python3\nimport sys\nfrom m.n import C\nif __name__ == \"__main__\":\n    sys.exit(C.run())\n"
        );
    }

    #[test]
    fn bad_entry_points_are_refused() {
        for line in ["x", "x = m", "../x = m:f", "x = m:f()", "x = m;os:f", "= m:f", "x = 1m:f"] {
            let text = format!("[console_scripts]\n{line}\n");
            assert!(parse_entry_points(&text).unwrap_err().contains("is not `name"), "{line}");
        }
        assert_eq!(
            parse_entry_points("[console_scripts]\nx = a:f\n[gui_scripts]\nx = b:f\n").unwrap_err(),
            "two entry points make the script `x`"
        );
    }

    #[test]
    fn only_python_shebangs_are_rewritten() {
        let python = "/usr/bin/python3";
        assert_eq!(rewrite_shebang(b"#!python\nx\n", python).unwrap(), b"#!/usr/bin/python3\nx\n");
        assert_eq!(
            rewrite_shebang(b"#!pythonw -E\r\nx", python).unwrap(),
            b"#!/usr/bin/python3\nx"
        );
        assert_eq!(rewrite_shebang(b"#!python", python).unwrap(), b"#!/usr/bin/python3\n");
        assert_eq!(rewrite_shebang(b"#!/bin/sh\n", python), None);
        assert_eq!(rewrite_shebang(b"\x7fELF", python), None);
    }
}
