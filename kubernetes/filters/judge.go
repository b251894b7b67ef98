package main

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func judge(ctx context.Context, asked *situation) (*answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := fake.NewSimpleClientset(objects(asked)...)
	factory := informers.NewSharedInformerFactory(client, 0)
	heard := watchHandlers(factory)
	creation := newCreation(client, factory)
	there := &snapshot{}
	scheduler, err := newFramework(ctx, client, factory, there)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())
	if !heard.wait(ctx) {
		return nil, fmt.Errorf("the plugins have not heard of all objects")
	}

	answered := &answer{}
	var running []*v1.Pod
	for _, one := range asked.Running {
		result := creation.store(ctx, one)
		answered.Running = append(answered.Running, result)
		if result.Pod != nil && isSeen(result.Pod, asked.Nodes) {
			running = append(running, result.Pod)
		}
	}
	there.Snapshot = cache.NewSnapshot(running, asked.Nodes)
	for _, one := range asked.Waiting {
		result := verdict{stored: creation.store(ctx, one)}
		if result.Pod != nil {
			result.Nodes = filter(ctx, scheduler, result.Pod, asked.Nodes)
		}
		answered.Waiting = append(answered.Waiting, result)
	}
	for _, gang := range asked.Gangs {
		answered.Gangs = append(answered.Gangs, placements(ctx, scheduler, there, running, answered.Waiting, gang, asked.Nodes))
	}
	return answered, nil
}

// isSeen says whether kube-scheduler looks at a bound pod: not at one that has ended (newPodInformer), and
// not at one on a node that is not there (Cache.UpdateSnapshot).
func isSeen(pod *v1.Pod, nodes []*v1.Node) bool {
	ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	return !ended && slices.ContainsFunc(nodes, func(node *v1.Node) bool { return node.Name == pod.Spec.NodeName })
}

// snapshot is filled after the plugins were made: pods must be created first, and that needs informers,
// which start when the plugins have said which they need.
type snapshot struct {
	*cache.Snapshot
}

// objects are what the informers list. Pods are not among them: kube-scheduler looks at its snapshot.
func objects(asked *situation) []runtime.Object {
	return slices.Concat(
		defaulted(asked.Namespaces),
		defaulted(asked.Nodes),
		defaulted(asked.RuntimeClasses),
		defaulted(asked.Volumes),
		defaulted(asked.Claims),
		defaulted(asked.StorageClasses),
		defaulted(asked.CSINodes),
		defaulted(asked.Attachments),
	)
}

// defaulted gives objects the defaults of an API server.
func defaulted[T runtime.Object](objects []T) []runtime.Object {
	all := make([]runtime.Object, 0, len(objects))
	for _, object := range objects {
		legacyscheme.Scheme.Default(object)
		all = append(all, object)
	}
	return all
}

// defaultProfile is that of a kube-scheduler without a configuration file, without the plugin of dynamic
// resource claims: these are refused before placement is asked about.
func defaultProfile() (*schedulerapi.KubeSchedulerProfile, error) {
	var versioned configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var config schedulerapi.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &config, nil); err != nil {
		return nil, err
	}
	profile := &config.Profiles[0]
	var enabled []schedulerapi.Plugin
	for _, plugin := range profile.Plugins.MultiPoint.Enabled {
		if plugin.Name != names.DynamicResources && plugin.Name != names.DefaultPreemption {
			enabled = append(enabled, plugin)
		}
	}
	profile.Plugins.MultiPoint.Enabled = enabled
	return profile, nil
}

func newFramework(ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory,
	there *snapshot) (framework.Framework, error) {
	profile, err := defaultProfile()
	if err != nil {
		return nil, err
	}
	limits := nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())
	return frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(there),
		frameworkruntime.WithSharedCSIManager(limits),
		frameworkruntime.WithParallelism(1))
}

// filter asks as kube-scheduler's findNodesThatFitPod does, but for the nodes that it leaves out because
// it has found enough.
func filter(ctx context.Context, scheduler framework.Framework, pod *v1.Pod,
	nodes []*v1.Node) map[string]string {
	verdicts := make(map[string]string, len(nodes))
	state := framework.NewCycleState()
	result, status, _ := scheduler.RunPreFilterPlugins(ctx, state, pod)
	for _, node := range nodes {
		switch {
		case !status.IsSuccess():
			verdicts[node.Name] = words(status)
		case result != nil && !result.AllNodes() && !result.NodeNames.Has(node.Name):
			verdicts[node.Name] = "PreFilter: not among the nodes that a plugin names"
		default:
			info, err := scheduler.SnapshotSharedLister().NodeInfos().Get(node.Name)
			if err != nil {
				verdicts[node.Name] = fmt.Sprintf("snapshot: %v", err)
				continue
			}
			verdicts[node.Name] = words(scheduler.RunFilterPlugins(ctx, state, pod, info))
		}
	}
	return verdicts
}

func words(status *fwk.Status) string {
	if status.IsSuccess() {
		return ""
	}
	return fmt.Sprintf("%s: %s", status.Plugin(), status.Message())
}
