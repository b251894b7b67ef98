// Which nodes would take a pod? Asked of kube-scheduler's own plugins, in one process.
//
// Reads clusters as JSON, one a line, and answers each with a line: the pods as an API server would have
// stored them, and for each that waits, what every node is to it. There is no server and no cluster: the
// objects are given to the plugins through informers on a client that is a list in memory.
//
// What is Kubernetes' own is called, never copied: defaults, admission, validation, the default profile.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// situation is what there is, and who waits.
type situation struct {
	Namespaces     []*v1.Namespace               `json:"namespaces"`
	Nodes          []*v1.Node                    `json:"nodes"`
	RuntimeClasses []*nodev1.RuntimeClass        `json:"runtimeClasses"`
	Volumes        []*v1.PersistentVolume        `json:"volumes"`
	Claims         []*v1.PersistentVolumeClaim   `json:"claims"`
	StorageClasses []*storagev1.StorageClass     `json:"storageClasses"`
	CSINodes       []*storagev1.CSINode          `json:"csiNodes"`
	Attachments    []*storagev1.VolumeAttachment `json:"attachments"`
	// Bound pods, in the state in which their status says they are.
	Running []*v1.Pod `json:"running"`
	// Pods that somebody creates now: each is asked about alone.
	Waiting []*v1.Pod `json:"waiting"`
	// Gangs: which of these pods, each as often as it is named, with equal ones side by side.
	Gangs [][]int `json:"gangs"`
}

// answer has an entry for each pod and each gang of a situation, in its order.
type answer struct {
	Running []stored  `json:"running,omitempty"`
	Waiting []verdict `json:"waiting,omitempty"`
	// Per gang all ways to place it: the node of each pod, in order among equal pods; null if a pod of it
	// could not be created.
	Gangs [][][]string `json:"gangs,omitempty"`
}

// stored is what became of a pod when it was created.
type stored struct {
	Pod *v1.Pod `json:"pod,omitempty"`
	// Why it could not be created.
	Refused string `json:"refused,omitempty"`
}

// verdict is what kube-scheduler thinks of a pod.
type verdict struct {
	stored
	// Per node: empty if the pod may be there, else which plugin says no, and its words.
	Nodes map[string]string `json:"nodes,omitempty"`
}

func main() {
	metrics.Register()
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for number := 0; decoder.More(); number++ {
		var asked situation
		if err := decoder.Decode(&asked); err != nil {
			fail(number, err)
		}
		answered, err := judge(context.Background(), &asked)
		if err != nil {
			fail(number, err)
		}
		if err := encoder.Encode(answered); err != nil {
			fail(number, err)
		}
		if err := out.Flush(); err != nil {
			fail(number, err)
		}
	}
}

func fail(number int, err error) {
	fmt.Fprintf(os.Stderr, "situation %d: %v\n", number, err)
	os.Exit(1)
}
