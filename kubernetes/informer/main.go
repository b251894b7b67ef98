// Command informer is a client as Kubernetes' own controllers are: a shared informer of client-go that
// watches ConfigMaps, and says what it hears, so that a test can compare API servers.
//
// Usage: informer KUBECONFIG. It reads commands from its input and answers each on its output with `ok`:
//
//	hold      its watches end, and new requests fail, as when the network is down
//	release   requests go through again
//	churn N   another client changes another ConfigMap N times
//
// Lines that it says by itself: `expired` when the server no longer knows the version to go on from,
// `synced`, and `add`, `update`, `delete` with the name and the data of a ConfigMap.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// relation is the label that the test gives to what it wants to hear of.
const relation = "informer=yes"

var (
	printing sync.Mutex
	down     = &network{}
)

func say(words ...any) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(words...)
}

// network stands between client-go and the server.
type network struct {
	mutex sync.Mutex
	held  bool
	open  map[*body]bool
	next  http.RoundTripper
}

func (n *network) RoundTrip(request *http.Request) (*http.Response, error) {
	n.mutex.Lock()
	held := n.held
	n.mutex.Unlock()
	if held {
		// What client-go takes for a server that will be back soon: it goes on where it was.
		return nil, syscall.ECONNREFUSED
	}
	response, err := n.next.RoundTrip(request)
	if err != nil || !strings.HasSuffix(request.URL.Path, "/configmaps") {
		return response, err
	}
	watch := request.URL.Query().Get("watch") != ""
	switch {
	case response.StatusCode == http.StatusGone:
		say("expired")
	case watch && response.StatusCode == http.StatusOK:
		body := &body{ReadCloser: response.Body, network: n}
		n.mutex.Lock()
		n.open[body] = true
		n.mutex.Unlock()
		response.Body = body
	}
	return response, nil
}

func (n *network) hold(held bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.held = held
	if held {
		for body := range n.open {
			body.ended.Store(true)
			body.ReadCloser.Close()
		}
		n.open = map[*body]bool{}
	}
}

// body is that of a watch, which ends when the network goes down.
type body struct {
	io.ReadCloser
	network *network
	ended   atomic.Bool
	said    string
}

func (b *body) Read(bytes []byte) (int, error) {
	count, err := b.ReadCloser.Read(bytes)
	if err != nil && b.ended.Load() {
		// As a server ends a watch; client-go would begin anew after an error.
		err = io.EOF
	}
	// An error event says in the stream what a status says before it.
	b.said = b.said + string(bytes[:count])
	if strings.Contains(b.said, `"reason":"Expired"`) {
		say("expired")
		b.said = ""
	}
	if len(b.said) > 1<<16 {
		b.said = b.said[len(b.said)-1<<10:]
	}
	return count, err
}

func (b *body) Close() error {
	b.network.mutex.Lock()
	delete(b.network.open, b)
	b.network.mutex.Unlock()
	return b.ReadCloser.Close()
}

// churn changes a ConfigMap that nobody listens to, so often that a server forgets what was before.
func churn(config *rest.Config, times int) error {
	config = rest.CopyConfig(config)
	config.WrapTransport, config.QPS = nil, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	configs := client.CoreV1().ConfigMaps("default")
	noise := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "noise"}}
	if _, err := configs.Create(context.Background(), noise, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for count := range times {
		patch := fmt.Sprintf(`{"data":{"a":"%d"}}`, count)
		_, err := configs.Patch(context.Background(), "noise", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

func text(object any) string {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	config := object.(*v1.ConfigMap)
	return config.Name + " " + config.Data["a"]
}

func run(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// As JSON, so that what the server says in a stream can be read on its way.
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		down.next, down.open = next, map[*body]bool{}
		return down
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, time.Hour,
		informers.WithNamespace("default"),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = relation }))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { say("add", text(object)) },
		UpdateFunc: func(old, object any) {
			// A list tells of everything anew; what did not change is no news.
			if old.(*v1.ConfigMap).ResourceVersion != object.(*v1.ConfigMap).ResourceVersion {
				say("update", text(object))
			}
		},
		DeleteFunc: func(object any) { say("delete", text(object)) },
	})
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	say("synced")
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		command, number, _ := strings.Cut(commands.Text(), " ")
		switch command {
		case "hold", "release":
			down.hold(command == "hold")
		case "churn":
			times, err := strconv.Atoi(number)
			if err != nil {
				return err
			}
			if err := churn(config, times); err != nil {
				return err
			}
		default:
			return fmt.Errorf("what is %q?", command)
		}
		say("ok")
	}
	return commands.Err()
}

func main() {
	// What client-go logs of requests that fail is expected here.
	klog.LogToStderr(true)
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: informer KUBECONFIG")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
