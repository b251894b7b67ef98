//! How lists and watch events are spelt: JSON in, decoded objects out, one bad object at a time.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::Value;

use crate::Change;

mod fields;

use fields::without_managed_fields;

/// As much metadata as is needed to name an object and to resume after it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    namespace: Option<String>,
    name: Option<String>,
    resource_version: Option<String>,
    /// Of a list: where its next page begins; empty or absent on the last one.
    r#continue: Option<String>,
}

/// One page of a list.
pub(crate) struct Page<U> {
    pub(crate) items: Vec<U>,
    /// `Change::Unreadable` for each object that did not decode.
    pub(crate) unreadable: Vec<Change<U>>,
    /// The version of the whole collection; to watch from.
    pub(crate) version: String,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<String>,
}

/// What becomes of an object: of one that decodes, and of one that does not.
pub(crate) struct Reader<T, F, M> {
    pub(crate) parse: F,
    /// Makes what it can of an object that is no `T`.
    pub(crate) mend: M,
    pub(crate) decoded: PhantomData<fn() -> T>,
}

/// Decodes a page, passing each object through `reader` before the next one is decoded.
///
/// # Errors
/// When the page as a whole is not a list with a resource version.
pub(crate) fn page<T, U, F, M>(body: &str, reader: &mut Reader<T, F, M>) -> Result<Page<U>, String>
where
    T: DeserializeOwned,
    F: FnMut(T) -> U,
    M: FnMut(Value) -> Option<U>,
{
    #[derive(Deserialize)]
    struct Head {
        metadata: Meta,
    }
    let head: Head = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let short = without_managed_fields(body.as_bytes());
    let version = head.metadata.resource_version.filter(|version| !version.is_empty());
    let version = version.ok_or("the list has no metadata.resourceVersion")?;
    let next = head.metadata.r#continue.filter(|token| !token.is_empty());
    let mut page = Page { items: Vec::new(), unreadable: Vec::new(), version, next };

    // Twice, because it is nearly always well formed: straight into the target first, and only if
    // that fails once more by way of JSON values, which tells the bad objects from the good.
    let mut items = Vec::new();
    let straight = Items { each: |item: T| items.push(item), marker: PhantomData };
    let mut document = serde_json::Deserializer::from_slice(&short);
    if straight.deserialize(&mut document).is_ok() {
        page.items = items.into_iter().map(&mut reader.parse).collect();
        return Ok(page);
    }
    let careful = Items {
        each: |item: Value| match serde_path_to_error::deserialize::<_, T>(&item) {
            Ok(item) => page.items.push((reader.parse)(item)),
            Err(error) => {
                let meta = item.get("metadata").and_then(|meta| Meta::deserialize(meta).ok());
                match (reader.mend)(item) {
                    Some(item) => page.items.push(item),
                    None => page.unreadable.push(unreadable(meta.unwrap_or_default(), error)),
                }
            }
        },
        marker: PhantomData,
    };
    let mut document = serde_json::Deserializer::from_slice(&short);
    careful.deserialize(&mut document).map_err(|error| error.to_string())?;
    Ok(page)
}

/// What one line of a watch says.
pub(crate) enum Line<U> {
    /// Something changed; the object's version, if it has one, to resume after.
    Change(Change<U>, Option<String>),
    /// Nothing changed up to this version.
    Bookmark(Option<String>),
    /// The server ends the watch for this reason (an in-band `Status`).
    Error { code: u16, message: String },
}

/// Decodes a line of a watch.
///
/// # Errors
/// When the line is no watch event at all: the stream cannot be trusted any further.
pub(crate) fn line<T, U, F, M>(text: &[u8], reader: &mut Reader<T, F, M>) -> Result<Line<U>, String>
where
    T: DeserializeOwned,
    F: FnMut(T) -> U,
    M: FnMut(Value) -> Option<U>,
{
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
        object: Partial,
    }
    #[derive(Deserialize)]
    struct Partial {
        #[serde(default)]
        metadata: Meta,
    }
    #[derive(Deserialize)]
    struct Body<T> {
        object: T,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        code: u16,
        reason: String,
        message: String,
    }

    let text: &[u8] = &without_managed_fields(text);
    let head: Head<'_> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let mut meta = head.object.metadata;
    let version = meta.resource_version.take();
    match head.r#type.as_ref() {
        "BOOKMARK" => Ok(Line::Bookmark(version)),
        "ERROR" => {
            let body = serde_json::from_slice::<Body<Status>>(text).map_err(|error| error.to_string())?;
            let Status { code, reason, message } = body.object;
            // Old servers send the reason without a code.
            let code = if code == 0 && (reason == "Expired" || reason == "Gone") { 410 } else { code };
            Ok(Line::Error { code, message })
        }
        kind @ ("ADDED" | "MODIFIED" | "DELETED") => {
            let told = |object: U| match kind {
                "DELETED" => Change::Gone(object),
                _ => Change::Set(object),
            };
            let change = match serde_json::from_slice::<Body<T>>(text) {
                Ok(body) => told((reader.parse)(body.object)),
                Err(error) => {
                    let body = serde_json::from_slice::<Body<Value>>(text).ok();
                    match body.and_then(|body| (reader.mend)(body.object)) {
                        Some(object) => told(object),
                        None => unreadable(meta, named::<Body<T>>(text).unwrap_or_else(|| error.to_string())),
                    }
                }
            };
            Ok(Line::Change(change, version))
        }
        other => Err(format!("unknown watch event type {other:?}")),
    }
}

/// The same error again, with the field that it is about.
fn named<T: DeserializeOwned>(text: &[u8]) -> Option<String> {
    let mut again = serde_json::Deserializer::from_slice(text);
    serde_path_to_error::deserialize::<_, T>(&mut again).err().map(|error| error.to_string())
}

fn unreadable<U>(meta: Meta, error: impl fmt::Display) -> Change<U> {
    let error = error.to_string();
    Change::Unreadable {
        namespace: meta.namespace.unwrap_or_default(),
        name: meta.name.unwrap_or_default(),
        error: error.strip_prefix("object.").map(str::to_owned).unwrap_or(error),
    }
}

/// Walks through a list's `items` without keeping them: each is handed over as soon as it is read.
struct Items<I, E> {
    each: E,
    marker: PhantomData<I>,
}

impl<'de, I: DeserializeOwned, E: FnMut(I)> DeserializeSeed<'de> for Items<I, E> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, I: DeserializeOwned, E: FnMut(I)> Visitor<'de> for Items<I, E> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes list")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == "items" {
                map.next_value_seed(Sequence(&mut self))?;
            } else {
                map.next_value::<serde::de::IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Sequence<'a, I, E>(&'a mut Items<I, E>);

impl<'de, I: DeserializeOwned, E: FnMut(I)> DeserializeSeed<'de> for Sequence<'_, I, E> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // `items: null` is how Go prints a list that has none.
        deserializer.deserialize_option(self)
    }
}

impl<'de, I: DeserializeOwned, E: FnMut(I)> Visitor<'de> for Sequence<'_, I, E> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list's items")
    }

    fn visit_none<X>(self) -> Result<(), X> {
        Ok(())
    }

    fn visit_unit<X>(self) -> Result<(), X> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(item) = seq.next_element::<I>()? {
            (self.0.each)(item);
        }
        Ok(())
    }
}
