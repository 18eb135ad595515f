package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// newRedisCluster starts a cluster of three nodes without replicas.
func newRedisCluster(t *testing.T) (nodes []*redisServer, url string) {
	t.Helper()
	const slots = 16384
	var addrs []string
	for range 3 {
		_, bus, err := net.SplitHostPort(freeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		s := newRedisServer(t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000")
		host, port, err := net.SplitHostPort(s.addr)
		if err != nil {
			t.Fatal(err)
		}
		i := len(nodes)
		nodes, addrs = append(nodes, s), append(addrs, s.addr)
		s.do("CLUSTER", "ADDSLOTSRANGE", i*slots/3, (i+1)*slots/3-1)
		nodes[0].do("CLUSTER", "MEET", host, port, bus)
	}
	for _, s := range nodes {
		s.await("the cluster is complete", func(c *redis.Client) bool {
			info := c.ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return nodes, "redis-cluster://" + strings.Join(addrs, ",")
}

func TestRedisClusterServesAndANodeThatDiesIsWaitedOut(t *testing.T) {
	t.Parallel()
	nodes, url := newRedisCluster(t)
	p := newPlantOn(t, url)
	names := p.backlog(60)
	p.written("event")
	release := p.hold(names[20:50]...)
	p.start(schedules, works)
	p.sweep()
	p.awaitBlocked(p.config.Worker.Concurrency)
	for _, s := range nodes {
		s.kill()
		s.start() // without its keys
	}
	release()
	p.written("after it")
	p.awaitRest()
	p.wantOneEffect()
}

func TestNodeOfARedisClusterIsNotTakenForASingleServer(t *testing.T) {
	t.Parallel()
	nodes, _ := newRedisCluster(t)
	p := newPlantOn(t, "redis://"+nodes[0].addr)
	env := []string{"COMPACTOR_DATABASE_URL=" + p.config.Database.URL.Reveal(), "COMPACTOR_REDIS_URL=redis://" + nodes[0].addr}
	invoke(t, env, "doctor").want(t, exitFindings, "is a node of a cluster: write redis-cluster:// or rediss-cluster://")
	p.start(works)
	if !p.logs.has("write redis-cluster:// or rediss-cluster://") {
		t.Error("the log does not tell what to write")
	}
}

func TestRedisSentinelServesAndFailsOver(t *testing.T) {
	t.Parallel()
	first := newRedisServer(t)
	host, port, err := net.SplitHostPort(first.addr)
	if err != nil {
		t.Fatal(err)
	}
	second := newRedisServer(t, "--replicaof", host+" "+port)
	second.await("the replica follows", func(c *redis.Client) bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	file := filepath.Join(t.TempDir(), "sentinel.conf") // a sentinel rewrites it
	if err := os.WriteFile(file, []byte("sentinel monitor one "+host+" "+port+" 1\n"+
		"sentinel down-after-milliseconds one 500\nsentinel failover-timeout one 2000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := newRedisServer(t, file, "--sentinel")
	sentinel.await("the sentinel knows the replica", func(c *redis.Client) bool {
		return strings.Contains(c.Info(t.Context(), "sentinel").Val(), "slaves=1")
	})

	p := newPlantOn(t, "redis-sentinel://"+sentinel.addr+"?master=one")
	names := p.backlog(60)
	release := p.hold(names[20:50]...)
	p.start(schedules, works)
	p.sweep()
	p.awaitBlocked(p.config.Worker.Concurrency)
	first.kill()
	release()
	p.written("while there is no master")
	p.awaitRest()
	p.wantOneEffect()
}
