#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"
#include "config/settings/zone_table.h"
#include "dns/name.h"
#include "dns/tsig/tsig.h"
#include "zone/settings/compiled_settings.h"

/// The configuration as values: the content of the YAML file, checked, with every default filled
/// in. Field initialisers are the documented defaults (docs/reference/configuration.md). Paths are
/// absolute.
namespace pando::config {

using Duration = std::chrono::milliseconds;

enum class LogLevel : std::uint8_t { kTrace, kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : std::uint8_t { kText, kJson };

struct Log {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  bool operator==(const Log&) const = default;
};

/// server.workers: the starter of the workers and their number.
struct Workers {
  enum class Mode : std::uint8_t { kAuto, kFixed, kExternal };
  Mode mode = Mode::kAuto;  ///< auto: one for each CPU the manager may run on
  std::uint32_t count = 0;  ///< with kFixed
  bool operator==(const Workers&) const = default;
};

/// Paths of a certificate with its chain, and of its private key, in PEM.
struct TlsPair {
  std::string certificate;
  std::string key;
  bool operator==(const TlsPair&) const = default;
};

using RateLimit = zone::RateLimit;

/// server.cookies (RFC 7873, RFC 9018): 16 octets each.
struct Cookies {
  std::vector<Bytes> secrets;  ///< the first signs, all verify; empty = random at each start
  bool operator==(const Cookies&) const = default;
};

/// server.dnstap: copies of requests and responses for a collector.
struct Dnstap {
  enum class Messages : std::uint8_t { kQueries, kResponses, kUpdates };
  std::string socket;        ///< of the collector
  std::uint32_t sample = 1;  ///< one request in this many
  std::vector<Messages> messages{Messages::kQueries, Messages::kResponses, Messages::kUpdates};
  [[nodiscard]] bool has(Messages kind) const noexcept;
  bool operator==(const Dnstap&) const = default;
};

/// server.query-log: a line of JSON for each request, in a file or for a reader.
struct QueryLog {
  std::string file;          ///< empty: `socket` has the path
  std::string socket;        ///< at which the reader listens
  std::uint32_t sample = 1;  ///< one request in this many
  bool operator==(const QueryLog&) const = default;
};

/// An element of server.xdp: an interface whose queries workers read past the kernel's socket path.
struct XdpInterface {
  enum class Mode : std::uint8_t {
    kAuto,     ///< native if the driver can, else generic
    kNative,   ///< in the driver
    kGeneric,  ///< behind the driver, with any of them
  };
  std::string interface;
  std::uint32_t queues = 0;  ///< 0 = as many as the interface has
  Mode mode = Mode::kAuto;
  bool operator==(const XdpInterface&) const = default;
};

/// Port 53 of every address.
[[nodiscard]] std::vector<Endpoint> default_listen();

struct Server {
  std::vector<Endpoint> listen = default_listen();
  std::vector<Endpoint> listen_tls;  ///< default port 853
  std::optional<TlsPair> tls;        ///< absent = the manager makes a key and a certificate
  std::vector<IpPrefix> proxy_protocol_from;
  Workers workers;
  bool cpu_affinity = false;
  std::string run_directory = "/run/pando";
  std::string user = "pando";
  std::string worker_user = "pando-worker";
  std::string control_group = "pando";
  std::string identity;  ///< empty = never sent
  std::string version;   ///< empty = never sent
  std::uint16_t udp_payload = 1232;
  bool minimal_responses = true;
  Cookies cookies;
  RateLimit rate_limit;
  std::optional<IpAddress> transfer_source;
  bool md5 = false;
  Log log;
  std::optional<Dnstap> dnstap;
  std::optional<QueryLog> query_log;
  std::vector<XdpInterface> xdp;
  bool operator==(const Server&) const = default;
};

enum class Verify : std::uint8_t { kHostCrash, kAlways };

struct Checkpoint {
  Duration interval = std::chrono::minutes(5);
  std::uint64_t journal = std::uint64_t{64} << 20;  ///< bytes journalled since the last one
  bool operator==(const Checkpoint&) const = default;
};

struct StoreSettings {
  std::string path = "/dev/shm/pando/zones.store";
  std::string image;  ///< empty = none
  std::uint64_t size_limit = std::uint64_t{32} << 30;
  std::string journal = "/var/lib/pando/journal";
  std::uint64_t journal_limit = std::uint64_t{1} << 30;
  Checkpoint checkpoint;
  Verify verify = Verify::kHostCrash;
  bool operator==(const StoreSettings&) const = default;
};

/// Bytes, or a share of the store's size limit ("10%").
struct SizeOrShare {
  std::uint64_t bytes = 0;
  std::uint32_t percent = 0;  ///< replaces `bytes` when not 0
  [[nodiscard]] std::uint64_t of(std::uint64_t total) const noexcept {
    return percent != 0 ? total / 100 * percent : bytes;
  }
  bool operator==(const SizeOrShare&) const = default;
};

struct DurationRange {
  Duration min{};
  Duration max{};
  bool operator==(const DurationRange&) const = default;
};

struct Limits {
  std::uint32_t rrset_records = 100;
  std::uint32_t name_types = 100;
  std::uint64_t zone_records = 0;  ///< 0 = none
  std::uint32_t tcp_clients = 1000;
  Duration tcp_idle = std::chrono::seconds(10);
  std::uint32_t tls_clients = 1000;
  /// Longer than tcp_idle, since a new connection costs a handshake.
  Duration tls_idle = std::chrono::seconds(30);
  std::uint32_t transfers_in = 50;
  std::uint32_t transfers_in_per_primary = 10;
  Duration transfer_time = std::chrono::hours(2);
  SizeOrShare transfer_size{0, 100};
  DurationRange refresh{std::chrono::seconds(1), std::chrono::weeks(4)};
  std::uint64_t history = std::uint64_t{16} << 20;
  SizeOrShare history_total{0, 10};
  std::uint64_t snapshots = std::uint64_t{64} << 20;
  Duration pin_time = std::chrono::minutes(10);
  std::uint64_t pinned_bytes = std::uint64_t{1} << 30;
  Duration removed_zones = std::chrono::days(30);  ///< 0 = kept until they are purged
  bool operator==(const Limits&) const = default;
};

struct Key {
  dns::Name name;
  dns::TsigAlgorithm algorithm = dns::TsigAlgorithm::kSha256;
  Bytes secret;  ///< empty: the manager makes it
  /// Where the manager keeps a secret that it makes, for `nsupdate -l`; empty = the configuration
  /// has the secret.
  std::string session_file;
  bool operator==(const Key&) const = default;
};

/// remotes[].tls: what the remote's certificate must prove, and ours for it (RFC 9103 §9.3).
struct RemoteTls {
  std::string hostname;     ///< empty = any name
  std::string ca;           ///< empty = the system's certificates
  std::vector<Bytes> pins;  ///< SHA-256 of public keys (RFC 7858 §4.2); empty = any key
  std::string certificate;  ///< shown to the remote; empty = server.tls
  std::string key;
  /// Whether a certificate can prove to be the remote's; else it only encrypts.
  [[nodiscard]] bool authenticates() const noexcept { return !hostname.empty() || !pins.empty(); }
  bool operator==(const RemoteTls&) const = default;
};

struct Remote {
  std::string name;
  std::vector<Endpoint> address;  ///< tried in this order; never empty
  std::optional<dns::Name> key;
  std::optional<RemoteTls> tls;
  bool operator==(const Remote&) const = default;
};

/// Members of a consumed catalog that are in this group have this template.
struct CatalogGroup {
  std::string name;
  std::string template_name;
  bool operator==(const CatalogGroup&) const = default;
};

/// A catalog zone (RFC 9432).
struct Catalog {
  enum class Role : std::uint8_t { kConsumer, kProducer };
  dns::Name zone;
  Role role = Role::kConsumer;
  std::vector<std::string> primaries;  ///< names of remotes, of the catalog and its members
  /// Of member zones, or of the produced catalog itself; empty = "default" only.
  std::string template_name;
  std::vector<CatalogGroup> groups{};  ///< the first group that a member has counts
  /// Members are these names or below them. Empty: any names outside zones of others.
  std::vector<dns::Name> members_below{};
  /// How long members stay if more than half of them leave together.
  std::chrono::milliseconds removal_grace = std::chrono::hours(24);
  [[nodiscard]] bool produces() const noexcept { return role == Role::kProducer; }
  bool operator==(const Catalog&) const = default;
};

/// The file in which the manager keeps a produced catalog, in a folder beside the journal's files.
[[nodiscard]] std::string produced_catalog_path(const std::string& journal, dns::NameView catalog);

/// A file name for each zone that no other zone gets: the folded name with `zone` after its final
/// dot. kInvalid: the name is too long.
Result<std::string> zone_file_name(dns::NameView zone);

/// The file that the manager makes for a zone that is added with its content, in a folder beside
/// the journal's files. kInvalid: the name cannot be that of a file.
Result<std::string> created_zone_path(const std::string& journal, dns::NameView zone);

/// Whether zones are signed with NSEC3 records, and whether delegations without DS have one.
enum class Nsec3Use : std::uint8_t { kOff, kOn, kOptOut };

/// Whether one key signs everything, or one the keys and another one the data.
enum class PolicyKeys : std::uint8_t { kCsk, kKskZsk };
/// Whether the steps of a key roll need the operator's word.
enum class KeyRolls : std::uint8_t { kManual, kAuto };

/// dnssec-policies: how zones are signed here.
struct DnssecPolicy {
  std::string name;
  std::uint8_t algorithm = 13;                ///< of a key that is made (RFC 8624: P-256)
  PolicyKeys keys = PolicyKeys::kCsk;         ///< that are made
  KeyRolls rolls = KeyRolls::kManual;
  Duration validity = std::chrono::days(14);  ///< of new signatures
  Nsec3Use nsec3 = Nsec3Use::kOff;            ///< RFC 9276 §3.1: no iterations, no salt
  /// The least that is left of each signature that is served; 0: five fourteenths of `validity`.
  Duration refresh{0};
  Duration propagation = std::chrono::hours(1);   ///< until all secondaries have a new version
  Duration parent_ds_ttl = std::chrono::days(1);  ///< TTL of the DS records at the parent
  bool cds = true;                                ///< CDS and CDNSKEY ask the parent for them
  std::string ds_check{};  ///< name of the remote that is asked for them; empty: the operator says
  bool make_keys = true;  ///< false: a zone's keys come from elsewhere, and no other is made
  [[nodiscard]] Duration refresh_time() const noexcept {
    return refresh.count() != 0 ? refresh : validity / 14 * 5;
  }
  bool operator==(const DnssecPolicy&) const = default;
};
/// The policy that exists without being written down.
inline constexpr std::string_view kDefaultDnssecPolicy = "default";
/// Written in the place of a policy for a zone that is not signed here.
inline constexpr std::string_view kNoDnssecPolicy = "off";

/// http.keys: a client of pando-http that shows this secret.
struct HttpKey {
  enum class Role : std::uint8_t { kRead, kWrite, kAdmin };  ///< each may what those before it may
  std::string name;
  std::string secret{};
  Role role = Role::kRead;
  /// Zones that the client sees; empty = all. A first label "*" stands for one or more labels.
  std::vector<dns::Name> zones;
  [[nodiscard]] bool sees(dns::NameView zone) const noexcept;
  bool operator==(const HttpKey&) const = default;
};

/// Loopback, so that nobody else can read before somebody wrote an address down.
[[nodiscard]] std::vector<Endpoint> default_http_listen();

/// 127.0.0.0/8 and ::1: no other host reaches these.
[[nodiscard]] bool is_loopback(const IpAddress& address);

/// http: metrics over HTTP, by the program pando-http.
struct Http {
  std::vector<Endpoint> listen = default_http_listen();
  std::vector<HttpKey> keys;  ///< empty = everybody reads
  std::optional<TlsPair> tls;
  std::string user = "pando-http";
  std::uint32_t metrics_zones = 0;  ///< zones with metrics of their own
  std::string template_name;        ///< of zones that clients add; empty = "default" only
  /// Names by which browsers may reach a server without keys, beside localhost; lower case.
  std::vector<std::string> hosts;
  /// Whether some key may change records of some zone, and of this zone.
  [[nodiscard]] bool writes() const noexcept;
  [[nodiscard]] bool writes(dns::NameView zone) const noexcept;
  /// Whether some key may add and remove this zone.
  [[nodiscard]] bool administers(dns::NameView zone) const noexcept;
  bool operator==(const Http&) const = default;
};

/// The whole file. Remotes and keys are referenced by name; load() has checked that they exist.
struct Settings {
  Server server;
  StoreSettings store;
  Limits limits;
  std::vector<Key> keys;
  std::vector<Remote> remotes;
  std::vector<DnssecPolicy> dnssec_policies;
  std::vector<Catalog> catalogs;
  std::optional<Http> http;
  ZoneTable zones;  ///< of `zones`, `zone-lists` and the list of added zones alike
  /// Options of each template, as numbers for `zones`; of zones without one.
  std::map<std::string, std::uint32_t, std::less<>> templates;
  std::uint32_t default_options = 0;
  bool has_added_list = false;  ///< there is a list of added zones, be it empty

  [[nodiscard]] const Key* find_key(dns::NameView name) const noexcept;
  /// Whether the zone is a catalog that this server produces.
  [[nodiscard]] bool produces(dns::NameView zone) const noexcept;
  [[nodiscard]] const Remote* find_remote(std::string_view name) const noexcept;
  /// nullopt: there is none. "default" is there always.
  [[nodiscard]] std::optional<DnssecPolicy> dnssec_policy(std::string_view name) const;
};

/// Settings for the workers, stored with a version.
[[nodiscard]] zone::ServerSettings compile(const Server& server, const Limits& limits);
/// Settings of a zone for the workers. The primaries' addresses come first in `allow_notify`, so
/// that no rule can deny them.
[[nodiscard]] zone::ZoneSettings compile(const ZoneOptions& options, const Settings& settings);

/// Key paths whose values differ and which the manager reads only at start.
[[nodiscard]] std::vector<std::string> restart_needed(const Settings& running,
                                                      const Settings& wanted);

}  // namespace pando::config
