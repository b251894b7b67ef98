package main

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// handlers knows who listens to the informers behind which plugins keep caches of their own. An informer
// that is in sync has not told everybody yet.
type handlers struct {
	lock          sync.Mutex
	registrations []cache.ResourceEventHandlerRegistration
}

type listened struct {
	cache.SharedIndexInformer
	handlers *handlers
}

func (l *listened) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := l.SharedIndexInformer.AddEventHandler(handler)
	l.handlers.lock.Lock()
	defer l.handlers.lock.Unlock()
	l.handlers.registrations = append(l.handlers.registrations, registration)
	return registration, err
}

func watchHandlers(factory informers.SharedInformerFactory) *handlers {
	known := &handlers{}
	factory.InformerFor(&v1.PersistentVolume{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return &listened{coreinformers.NewPersistentVolumeInformer(client, resync, cache.Indexers{}), known}
	})
	factory.InformerFor(&v1.PersistentVolumeClaim{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		return &listened{coreinformers.NewPersistentVolumeClaimInformer(client, "", resync, byNamespace), known}
	})
	return known
}

// wait says whether all have heard of what there was when the informers started.
func (h *handlers) wait(ctx context.Context) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, one := range h.registrations {
		for !one.HasSynced() {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(time.Millisecond):
			}
		}
	}
	return true
}
