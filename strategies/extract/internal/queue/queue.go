// Package queue is a priority queue of items whose priorities fall while they wait. It takes n log n steps for n items if
// each priority changes a bounded number of times. A Queue is not safe for concurrent use.
package queue

import (
	"container/heap"
)

// Queue is a priority queue of items whose priorities fall while they wait. The zero value
// is empty.
type Queue[T any] struct{ entries entries[T] }

type queueEntry[T any] struct {
	item     T
	priority float64
	order    int
}

// Add adds an item. Of items with equal priorities the one with the lowest order comes
// first; orders are unique. Items must be added before All is called.
func (q *Queue[T]) Add(item T, priority float64, order int) {
	q.entries = append(q.entries, queueEntry[T]{item, priority, order})
}

// All yields the items by falling priority. current returns the priority of an item at the
// time of the call, and false to drop the item.
func (q *Queue[T]) All(current func(T) (priority float64, ok bool)) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		heap.Init(&q.entries)
		for len(q.entries) > 0 {
			first := &q.entries[0]
			priority, ok := current(first.item)
			if ok && priority < first.priority {
				first.priority = priority
				heap.Fix(&q.entries, 0)
				continue
			}
			if item := heap.Pop(&q.entries).(queueEntry[T]).item; ok && !yield(item) {
				return
			}
		}
	}
}

// entries implements heap.Interface.
type entries[T any] []queueEntry[T]

func (e entries[T]) Len() int { return len(e) }

func (e entries[T]) Less(i, j int) bool {
	return e[i].priority > e[j].priority || e[i].priority == e[j].priority && e[i].order < e[j].order
}

func (e entries[T]) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries[T]) Push(x any)   { *e = append(*e, x.(queueEntry[T])) }

func (e *entries[T]) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
