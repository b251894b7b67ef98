package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// placements are all ways in which kube-scheduler could bind the pods of a gang one after the other, if it
// took them in any order and any node that it finds feasible: everything is tried.
func placements(ctx context.Context, scheduler framework.Framework, there *snapshot, running []*v1.Pod,
	waiting []verdict, gang []int, nodes []*v1.Node) [][]string {
	for _, at := range gang {
		if waiting[at].Pod == nil {
			return nil
		}
	}
	begin := there.Snapshot
	defer func() { there.Snapshot = begin }()
	found := [][]string{}
	// Where each pod of the gang is; empty: not yet. What is reached in several ways is looked at once.
	seen := map[string]bool{}
	reached := [][]string{make([]string, len(gang))}
	for len(reached) > 0 {
		seats := reached[len(reached)-1]
		reached = reached[:len(reached)-1]
		there.Snapshot = cache.NewSnapshot(with(running, waiting, gang, seats), nodes)
		complete := true
		for at, seat := range seats {
			if seat != "" {
				continue
			}
			complete = false
			if at > 0 && gang[at-1] == gang[at] && seats[at-1] == "" {
				// The same as the one before.
				continue
			}
			for node, problem := range filter(ctx, scheduler, waiting[gang[at]].Pod, nodes) {
				if problem != "" {
					continue
				}
				next := slices.Clone(seats)
				next[at] = node
				inOrder(gang, next)
				if key := strings.Join(next, " "); !seen[key] {
					seen[key] = true
					reached = append(reached, next)
				}
			}
		}
		if complete {
			found = append(found, seats)
		}
	}
	slices.SortFunc(found, slices.Compare)
	return found
}

// with is what runs and what was placed.
func with(running []*v1.Pod, waiting []verdict, gang []int, seats []string) []*v1.Pod {
	all := slices.Clone(running)
	for at, node := range seats {
		if node == "" {
			continue
		}
		placed := waiting[gang[at]].Pod.DeepCopy()
		placed.Name = fmt.Sprintf("%s-%d", placed.Name, at)
		placed.UID = types.UID(placed.Name)
		placed.Spec.NodeName = node
		all = append(all, placed)
	}
	return all
}

// inOrder sorts the seats of equal pods, those that have none last.
func inOrder(gang []int, seats []string) {
	for from := 0; from < len(gang); {
		to := from
		for to < len(gang) && gang[to] == gang[from] {
			to++
		}
		slices.SortFunc(seats[from:to], func(one, other string) int {
			if (one == "") != (other == "") {
				return strings.Compare(other, one)
			}
			return strings.Compare(one, other)
		})
		from = to
	}
}
