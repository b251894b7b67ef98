//! What does a body in Protobuf say? As much as `kubectl create` needs: it sends the kinds that it makes
//! itself in no other form.
//!
//! The messages are a table, `protobuf/messages.txt`. A message or field that is not in it is refused,
//! never dropped. Must never know what an object means.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::status::ApiError;

/// How a body begins.
const MAGIC: &[u8] = b"k8s\0";

/// Messages by name, fields by number.
static MESSAGES: LazyLock<BTreeMap<&str, BTreeMap<u64, Field>>> =
    LazyLock::new(|| table(include_str!("protobuf/messages.txt")));

/// A field of a message.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    many: Many,
    kind: &'static str,
    /// It says something even when it is zero or empty.
    explicit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Many {
    One,
    List,
    Map,
}

fn table(text: &'static str) -> BTreeMap<&'static str, BTreeMap<u64, Field>> {
    let mut messages: BTreeMap<&str, BTreeMap<u64, Field>> = BTreeMap::new();
    let mut message = "";
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.split(' ');
        let first = words.next().unwrap_or_default();
        let Ok(number) = first.parse() else {
            message = first;
            messages.entry(message).or_default();
            continue;
        };
        let (name, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let explicit = kind.ends_with('?');
        let kind = kind.trim_end_matches('?');
        let many = match kind.as_bytes().first() {
            Some(b'[') => Many::List,
            Some(b'{') => Many::Map,
            _ => Many::One,
        };
        let kind = kind.trim_matches(['[', ']', '{', '}']);
        messages.entry(message).or_default().insert(number, Field { name, many, kind, explicit });
    }
    messages
}

/// Reads an object.
///
/// # Errors
/// 400 when the bytes are broken, 415 for what is not in the table, with what to do instead.
pub(crate) fn object(body: &[u8]) -> Result<Value, ApiError> {
    let broken = || ApiError::bad_request("the body is no object in Protobuf");
    let rest = body.strip_prefix(MAGIC).ok_or_else(broken)?;
    let (mut kind, mut version, mut raw) = (String::new(), String::new(), &[][..]);
    let mut fields = Reader(rest);
    while let Some((number, wire)) = fields.next().ok_or_else(broken)? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => {
                let mut meta = Reader(meta);
                while let Some(field) = meta.next().ok_or_else(broken)? {
                    match field {
                        (1, Wire::Bytes(text)) => version = String::from_utf8_lossy(text).into_owned(),
                        (2, Wire::Bytes(text)) => kind = String::from_utf8_lossy(text).into_owned(),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let Some((name, _)) = MESSAGES.get_key_value(kind.as_str()) else { return Err(unknown(&kind, "")) };
    let mut value = message(name, raw, &kind)?;
    value["apiVersion"] = version.into();
    value["kind"] = kind.into();
    Ok(value)
}

fn unknown(kind: &str, field: &str) -> ApiError {
    let what = if field.is_empty() { kind.to_owned() } else { format!("{kind} with {field}") };
    ApiError::unsupported_media(format!(
        "this server does not read {what} in Protobuf: send it as YAML, e.g. by `kubectl create … --dry-run=client -o yaml | kubectl apply -f -`"
    ))
}

/// Reads a message of the table; `kind` is that of the whole object, for errors.
fn message(name: &str, bytes: &[u8], kind: &str) -> Result<Value, ApiError> {
    let broken = || ApiError::bad_request(format!("the body is no {kind} in Protobuf"));
    let known = MESSAGES.get(name).ok_or_else(|| unknown(kind, name))?;
    let mut object = Map::new();
    let mut fields = Reader(bytes);
    while let Some((number, wire)) = fields.next().ok_or_else(broken)? {
        let field = known.get(&number).ok_or_else(|| unknown(kind, &format!("field {number} of {name}")))?;
        match field.many {
            Many::One => {
                let value = single(field.kind, wire, kind)?;
                if field.explicit || !is_zero(&value) {
                    object.insert(field.name.to_owned(), value);
                }
            }
            Many::List => {
                let value = single(field.kind, wire, kind)?;
                let list = object.entry(field.name).or_insert_with(|| json!([]));
                list.as_array_mut().ok_or_else(broken)?.push(value);
            }
            Many::Map => {
                let Wire::Bytes(entry) = wire else { return Err(broken()) };
                let (key, value) = map_entry(field.kind, entry, kind)?;
                let map = object.entry(field.name).or_insert_with(|| json!({}));
                map.as_object_mut().ok_or_else(broken)?.insert(key, value);
            }
        }
    }
    Ok(Value::Object(object))
}

/// An entry of a map: field 1 is the key, field 2 the value.
fn map_entry(value_kind: &str, bytes: &[u8], kind: &str) -> Result<(String, Value), ApiError> {
    let broken = || ApiError::bad_request(format!("the body is no {kind} in Protobuf"));
    let mut key = String::new();
    let mut value = if value_kind == "amount" { "0".into() } else { "".into() };
    let mut fields = Reader(bytes);
    while let Some((number, wire)) = fields.next().ok_or_else(broken)? {
        match (number, wire) {
            (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
            (2, wire) => value = single(value_kind, wire, kind)?,
            _ => return Err(broken()),
        }
    }
    Ok((key, value))
}

/// One value of a type of the table.
fn single(type_name: &str, wire: Wire<'_>, kind: &str) -> Result<Value, ApiError> {
    let broken = || ApiError::bad_request(format!("the body is no {kind} in Protobuf"));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map(Value::from).map_err(|_| broken());
    match (type_name, wire) {
        ("-", _) => Ok(Value::Null),
        ("text", Wire::Bytes(bytes)) => text(bytes),
        ("bytes", Wire::Bytes(bytes)) => {
            serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).map_err(|_| broken())
        }
        // Negative numbers are sent as their two's complement.
        ("number", Wire::Number(number)) => Ok(number.cast_signed().into()),
        ("flag", Wire::Number(number)) => Ok((number != 0).into()),
        ("amount", Wire::Bytes(bytes)) => match Reader(bytes).next().ok_or_else(broken)? {
            Some((1, Wire::Bytes(bytes))) => text(bytes),
            _ => Ok("0".into()),
        },
        ("either", Wire::Bytes(bytes)) => {
            let (mut is_text, mut number, mut words) = (false, 0, String::new());
            let mut fields = Reader(bytes);
            while let Some(field) = fields.next().ok_or_else(broken)? {
                match field {
                    (1, Wire::Number(which)) => is_text = which != 0,
                    (2, Wire::Number(n)) => number = n.cast_signed(),
                    (3, Wire::Bytes(text)) => words = String::from_utf8_lossy(text).into_owned(),
                    _ => return Err(broken()),
                }
            }
            Ok(if is_text { words.into() } else { number.into() })
        }
        (name, Wire::Bytes(bytes)) => message(name, bytes, kind),
        _ => Err(broken()),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// A field as it is on the wire.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads the fields of a message one after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next field, `Some(None)` at the end, `None` where the bytes are broken.
    #[allow(clippy::should_implement_trait, reason = "an end and a break are told apart")]
    fn next(&mut self) -> Option<Option<(u64, Wire<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Number(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            // Numbers of fixed size are in no message of the table.
            _ => return None,
        };
        Some(Some((key >> 3, wire)))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for place in 0..10 {
            let byte = *self.take(1)?.first()?;
            number |= u64::from(byte & 0x7f).checked_shl(place * 7)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests;
