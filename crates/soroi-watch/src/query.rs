//! Which collection, and which of its objects.

use kube::core::ApiResource;

/// What to list and watch: a collection's path and the selectors that narrow it down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The collection, e.g. `/api/v1/pods` or `/apis/batch/v1/namespaces/team-a/jobs`.
    pub path: String,
    /// As in `kubectl get -l`, e.g. `app=train,tier!=debug`.
    pub label_selector: Option<String>,
    /// As in `kubectl get --field-selector`, e.g. `spec.nodeName=worker-1`.
    pub field_selector: Option<String>,
}

impl Query {
    /// Every object of a collection that is named by its path.
    pub fn path(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// Every object of a type, in all namespaces.
    pub fn all<K: kube::Resource<DynamicType = ()>>() -> Self {
        Self::path(K::url_path(&(), None))
    }

    /// Every object of a namespaced type in one namespace.
    pub fn within<K: kube::Resource<DynamicType = ()>>(namespace: &str) -> Self {
        Self::path(K::url_path(&(), Some(namespace)))
    }

    /// Every object of a type that is known at run time only, in all namespaces or in one.
    pub fn of(resource: &ApiResource, namespace: Option<&str>) -> Self {
        use kube::Resource as _;
        Self::path(kube::core::DynamicObject::url_path(resource, namespace))
    }

    /// Only objects whose labels match; replaces an earlier label selector.
    #[must_use]
    pub fn labels(self, selector: impl Into<String>) -> Self {
        Self { label_selector: Some(selector.into()), ..self }
    }

    /// Only objects whose fields match; replaces an earlier field selector.
    #[must_use]
    pub fn fields(self, selector: impl Into<String>) -> Self {
        Self { field_selector: Some(selector.into()), ..self }
    }

    /// The path with the selectors and these parameters, ready for a request line.
    pub(crate) fn uri(&self, parameters: &[(&str, &str)]) -> String {
        let selectors = [("labelSelector", &self.label_selector), ("fieldSelector", &self.field_selector)];
        let selectors = selectors.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?)));
        let mut uri = self.path.clone();
        let mut separator = '?';
        for (key, value) in parameters.iter().copied().chain(selectors) {
            uri.push(separator);
            uri.push_str(key);
            uri.push('=');
            push_encoded(&mut uri, value);
            separator = '&';
        }
        uri
    }
}

/// Appends `value` percent-encoded (RFC 3986): everything but the unreserved characters.
fn push_encoded(uri: &mut String, value: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push('%');
            uri.push(char::from(HEX[usize::from(byte >> 4)]));
            uri.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};

    use super::*;

    #[test]
    fn paths_follow_from_types() {
        assert_eq!(Query::all::<Pod>().path, "/api/v1/pods");
        assert_eq!(Query::within::<Job>("a").path, "/apis/batch/v1/namespaces/a/jobs");
        assert_eq!(Query::of(&ApiResource::erase::<Job>(&()), Some("a")), Query::within::<Job>("a"));
    }

    #[test]
    fn selectors_are_encoded() {
        let query = Query::all::<Pod>().labels("a in (b,c)").fields("spec.nodeName=w-1");
        assert_eq!(
            query.uri(&[("limit", "5")]),
            "/api/v1/pods?limit=5&labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=spec.nodeName%3Dw-1"
        );
        assert_eq!(Query::all::<Pod>().uri(&[]), "/api/v1/pods");
    }
}
