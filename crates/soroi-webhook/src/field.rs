//! What is wrong with which field, in the words that the API server itself uses.

use std::fmt;

use serde_json::Value;

/// A refusal, in the terms of `metav1.Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// HTTP status code.
    pub code: u16,
    /// The reason for programs: `Invalid` or `Forbidden`.
    pub reason: &'static str,
    /// The sentence for people; it names every field at fault.
    pub message: String,
    /// The fields at fault, one by one.
    pub causes: Vec<Cause>,
}

/// One field at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What kind of wrong.
    pub kind: CauseKind,
    /// The field's path, such as `spec.podSets[0].count`.
    pub field: String,
    /// The value; none where showing it would not help.
    pub value: Option<Value>,
    /// Why it was refused; empty where the kind says it all.
    pub detail: String,
}

/// What kind of wrong a field is (`metav1.CauseType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value must not be set or changed now.
    Forbidden,
    /// A value that must be unique is there twice.
    Duplicate,
    /// Nothing has the name that the value refers to.
    NotFound,
    /// The value is not one of those allowed.
    NotSupported,
    /// A value must be given.
    Required,
    /// There are too many.
    TooMany,
}

impl CauseKind {
    /// The word for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Required => "FieldValueRequired",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::NotSupported => "Unsupported value",
            Self::Required => "Required value",
            Self::TooMany => "Too many",
        }
    }
}

impl Cause {
    /// The sentence about the field, without its path.
    pub fn body(&self) -> String {
        let mut body = self.kind.words().to_owned();
        if let Some(value) = &self.value {
            body.push_str(&format!(": {value}"));
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// What was found while looking at an object.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    causes: Vec<Cause>,
    warnings: Vec<String>,
}

impl Findings {
    pub(crate) fn invalid(&mut self, field: impl Into<String>, value: &Value, detail: impl Into<String>) {
        self.add(CauseKind::Invalid, field, Some(value), detail);
    }

    /// Something larger than a value is wrong; it is not shown.
    pub(crate) fn malformed(&mut self, field: impl Into<String>, detail: impl Into<String>) {
        self.add(CauseKind::Invalid, field, None, detail);
    }

    pub(crate) fn forbidden(&mut self, field: impl Into<String>, detail: impl Into<String>) {
        self.add(CauseKind::Forbidden, field, None, detail);
    }

    pub(crate) fn required(&mut self, field: impl Into<String>, detail: impl Into<String>) {
        self.add(CauseKind::Required, field, None, detail);
    }

    pub(crate) fn duplicate(&mut self, field: impl Into<String>, value: &Value) {
        self.add(CauseKind::Duplicate, field, Some(value), "");
    }

    pub(crate) fn not_found(&mut self, field: impl Into<String>, value: &Value, detail: impl Into<String>) {
        self.add(CauseKind::NotFound, field, Some(value), detail);
    }

    pub(crate) fn not_supported(&mut self, field: impl Into<String>, value: &Value, allowed: &[&str]) {
        let allowed: Vec<String> = allowed.iter().map(|word| format!("{word:?}")).collect();
        self.add(
            CauseKind::NotSupported,
            field,
            Some(value),
            format!("supported values: {}", allowed.join(", ")),
        );
    }

    pub(crate) fn too_many(&mut self, field: impl Into<String>, count: usize, most: usize) {
        self.add(CauseKind::TooMany, field, Some(&count.into()), format!("must have at most {most} items"));
    }

    pub(crate) fn warn(&mut self, sentence: impl Into<String>) {
        self.warnings.push(sentence.into());
    }

    /// Takes out what was found elsewhere too.
    pub(crate) fn forget(&mut self, known: &Self) {
        self.causes.retain(|cause| !known.causes.contains(cause));
        self.warnings.retain(|warning| !known.warnings.contains(warning));
    }

    fn add(
        &mut self,
        kind: CauseKind,
        field: impl Into<String>,
        value: Option<&Value>,
        detail: impl Into<String>,
    ) {
        let cause = Cause { kind, field: field.into(), value: value.cloned(), detail: detail.into() };
        self.causes.push(cause);
    }

    /// The warnings, or the refusal that follows from what was found.
    pub(crate) fn verdict(self, group: &str, kind: &str, name: &str) -> Result<Vec<String>, Denial> {
        if self.causes.is_empty() {
            return Ok(self.warnings);
        }
        let sentences: Vec<String> = self.causes.iter().map(Cause::to_string).collect();
        let body = match sentences.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let dot = if group.is_empty() { "" } else { "." };
        let message = format!("{kind}{dot}{group} {name:?} is invalid: {body}");
        Err(Denial { code: 422, reason: "Invalid", message, causes: self.causes })
    }
}
