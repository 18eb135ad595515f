package jobs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hibiken/asynq"
)

// RedisURLs lists the forms of URLs that ParseRedis takes.
const RedisURLs = "redis://user:password@host:6379/0, redis-socket:///path?db=0, redis-cluster://host:6379,host:6379 or " +
	"redis-sentinel://host:26379,host:26379/0?master=name, or rediss, rediss-cluster or rediss-sentinel for TLS"

// ParseRedis returns the connection that a URL describes (see RedisURLs). User and password
// are those of the servers, the parameters sentinel_username and sentinel_password those of
// sentinels. Its errors do not show the URL, which may hold a password.
func ParseRedis(raw string) (asynq.RedisConnOpt, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("not a URL: special characters of the password must be escaped")
	}
	scheme, kind, _ := strings.Cut(u.Scheme, "-")
	query, hosts, user := u.Query(), strings.Split(u.Host, ","), u.User.Username()
	password, _ := u.User.Password()
	known := map[string][]string{"": {}, "socket": {"db"}, "cluster": {}, "sentinel": {"master", "sentinel_username", "sentinel_password"}}
	parameters, ok := known[kind]
	if !ok || scheme != "redis" && (scheme != "rediss" || kind == "socket") {
		return nil, fmt.Errorf("scheme %.40q: want %s", u.Scheme, RedisURLs)
	}
	for name := range query {
		if !slices.Contains(parameters, name) {
			return nil, fmt.Errorf("parameter %.40q: want one of [%s]", name, strings.Join(parameters, " "))
		}
	}
	number := strings.Trim(u.Path, "/")
	if kind == "socket" {
		number = query.Get("db")
	}
	db, err := strconv.Atoi(number)
	if number != "" && (err != nil || db < 0) {
		return nil, fmt.Errorf("database %.40q: want a number", number)
	}
	var secure *tls.Config
	if scheme == "rediss" {
		secure = &tls.Config{MinVersion: tls.VersionTLS12} // the name of the server is that of each address
	}
	switch {
	case kind == "socket" && u.Path == "":
		return nil, errors.New("no path of a socket: want redis-socket:///path")
	case kind == "socket":
		return asynq.RedisClientOpt{Network: "unix", Addr: u.Path, Username: user, Password: password, DB: db}, nil
	case u.Host == "":
		return nil, errors.New("no host: want " + RedisURLs)
	case kind == "cluster" && db != 0:
		return nil, fmt.Errorf("database %d: a cluster has only database 0", db)
	case kind == "cluster":
		return asynq.RedisClusterClientOpt{Addrs: addresses(hosts, "6379"), Username: user, Password: password, TLSConfig: secure}, nil
	case kind == "sentinel" && query.Get("master") == "":
		return nil, errors.New("no master: want redis-sentinel://host:26379,host:26379/0?master=name")
	case kind == "sentinel":
		return asynq.RedisFailoverClientOpt{
			MasterName: query.Get("master"), SentinelAddrs: addresses(hosts, "26379"),
			SentinelUsername: query.Get("sentinel_username"), SentinelPassword: query.Get("sentinel_password"),
			Username: user, Password: password, DB: db, TLSConfig: secure,
		}, nil
	case len(hosts) > 1:
		return nil, errors.New("several hosts: want redis-cluster:// or redis-sentinel://, or one host")
	}
	return asynq.RedisClientOpt{Addr: addresses(hosts, "6379")[0], Username: user, Password: password, DB: db, TLSConfig: secure}, nil
}

// addresses adds the port to hosts without one.
func addresses(hosts []string, port string) []string {
	for i, host := range hosts {
		if _, _, err := net.SplitHostPort(host); err != nil {
			hosts[i] = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
	}
	return hosts
}
