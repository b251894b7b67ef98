package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
)

// creation is what an API server does to a pod before it stores it: defaults, the admission plugins that
// change what placement looks at, the strategy of pods, validation.
type creation struct {
	runtimeClasses *runtimeclass.RuntimeClass
	tolerations    *defaulttolerationseconds.Plugin
}

func newCreation(client kubernetes.Interface, factory informers.SharedInformerFactory) *creation {
	classes := runtimeclass.NewRuntimeClass()
	classes.SetExternalKubeClientSet(client)
	classes.SetExternalKubeInformerFactory(factory)
	tolerations := defaulttolerationseconds.NewDefaultTolerationSeconds()
	tolerations.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	return &creation{classes, tolerations}
}

func (c *creation) store(ctx context.Context, asked *v1.Pod) stored {
	created, err := c.create(ctx, asked)
	if err != nil {
		return stored{Refused: err.Error()}
	}
	return stored{Pod: created}
}

func (c *creation) create(ctx context.Context, asked *v1.Pod) (*v1.Pod, error) {
	given := asked.DeepCopy()
	legacyscheme.Scheme.Default(given)
	internal := &core.Pod{}
	if err := legacyscheme.Scheme.Convert(given, internal, nil); err != nil {
		return nil, err
	}
	attributes := admission.NewAttributesRecord(internal, nil,
		schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, internal.Namespace, internal.Name,
		schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", admission.Create, nil, false, nil)
	if err := c.tolerations.Admit(ctx, attributes, nil); err != nil {
		return nil, err
	}
	if err := c.runtimeClasses.Admit(ctx, attributes, nil); err != nil {
		return nil, err
	}
	pod.Strategy.PrepareForCreate(ctx, internal)
	if err := c.runtimeClasses.Validate(ctx, attributes, nil); err != nil {
		return nil, err
	}
	if errs := pod.Strategy.Validate(ctx, internal); len(errs) > 0 {
		return nil, fmt.Errorf("%v", errs.ToAggregate())
	}
	created := &v1.Pod{}
	if err := legacyscheme.Scheme.Convert(internal, created, nil); err != nil {
		return nil, err
	}
	created.APIVersion, created.Kind = "v1", "Pod"
	// Creation clears what others say later.
	created.DeletionTimestamp, created.UID = asked.DeletionTimestamp, asked.UID
	if len(asked.Spec.NodeName) > 0 {
		created.Status = asked.Status
	}
	return created, nil
}
