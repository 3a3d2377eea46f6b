//! Environment markers (PEP 508), checked and written in one form.

use super::requirement::{Cursor, OPERATORS, RequirementFault};

/// Variables of PEP 508, with the spellings that setuptools took before it.
const VARIABLES: [&str; 18] = [
    "extra",
    "implementation_name",
    "implementation_version",
    "os.name",
    "os_name",
    "platform.machine",
    "platform.python_implementation",
    "platform.version",
    "platform_machine",
    "platform_python_implementation",
    "platform_release",
    "platform_system",
    "platform_version",
    "python_full_version",
    "python_implementation",
    "python_version",
    "sys.platform",
    "sys_platform",
];

/// Parentheses within parentheses: more than anybody writes, and few enough for the stack.
const DEPTH: usize = 32;

/// Reads a marker up to the end of the text.
pub(super) fn normalize(cursor: &mut Cursor<'_>) -> Result<String, RequirementFault> {
    alternatives(cursor, 0)
}

fn alternatives(cursor: &mut Cursor<'_>, depth: usize) -> Result<String, RequirementFault> {
    let mut out = conditions(cursor, depth)?;
    while word(cursor, "or") {
        out.push_str(" or ");
        out.push_str(&conditions(cursor, depth)?);
    }
    Ok(out)
}

fn conditions(cursor: &mut Cursor<'_>, depth: usize) -> Result<String, RequirementFault> {
    let mut out = condition(cursor, depth)?;
    while word(cursor, "and") {
        out.push_str(" and ");
        out.push_str(&condition(cursor, depth)?);
    }
    Ok(out)
}

fn condition(cursor: &mut Cursor<'_>, depth: usize) -> Result<String, RequirementFault> {
    cursor.skip_space();
    let start = cursor.at;
    if cursor.eat("(") {
        if depth == DEPTH {
            return Err(cursor.fault(start, "the marker has too many parentheses"));
        }
        let inner = alternatives(cursor, depth + 1)?;
        cursor.skip_space();
        if !cursor.eat(")") {
            return Err(cursor.fault(cursor.at, "the marker's parenthesis is not closed"));
        }
        return Ok(format!("({inner})"));
    }
    let (left, left_is_variable) = operand(cursor)?;
    let operator = operator(cursor)?;
    let (right, right_is_variable) = operand(cursor)?;
    if !left_is_variable && !right_is_variable {
        return Err(cursor.fault(start, "the marker compares two constants"));
    }
    Ok(format!("{left} {operator} {right}"))
}

fn operand(cursor: &mut Cursor<'_>) -> Result<(String, bool), RequirementFault> {
    cursor.skip_space();
    let start = cursor.at;
    for quote in ['"', '\''] {
        if cursor.rest().starts_with(quote) {
            cursor.at += 1;
            let text = cursor.take(|c| c != quote);
            if !cursor.eat(&quote.to_string()) {
                return Err(cursor.fault(start, "the marker's quote is not closed"));
            }
            let quote = if text.contains('"') { '\'' } else { '"' };
            return Ok((format!("{quote}{text}{quote}"), false));
        }
    }
    let name = cursor.take(|c| c.is_ascii_alphanumeric() || "._".contains(c));
    if VARIABLES.contains(&name) {
        return Ok((name.to_owned(), true));
    }
    let message = if name.is_empty() {
        "the marker ends where a variable or a quoted value is needed".to_owned()
    } else {
        format!("{name:?} is not a variable of markers")
    };
    Err(cursor.fault(start, message))
}

fn operator(cursor: &mut Cursor<'_>) -> Result<&'static str, RequirementFault> {
    cursor.skip_space();
    let start = cursor.at;
    if let Some(operator) = OPERATORS.into_iter().find(|operator| cursor.eat(operator)) {
        return Ok(operator);
    }
    if word(cursor, "in") {
        return Ok("in");
    }
    if word(cursor, "not") && word(cursor, "in") {
        return Ok("not in");
    }
    Err(cursor.fault(start, format!("here must be one of {} in not in", OPERATORS.join(" "))))
}

/// Takes a word that does not go on.
fn word(cursor: &mut Cursor<'_>, word: &str) -> bool {
    let before = *cursor;
    cursor.skip_space();
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let found = cursor.eat(word) && ends(cursor.rest());
    if !found {
        *cursor = before;
    }
    found
}
