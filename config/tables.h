#pragma once

#include "config/acl_reader.h"
#include "config/checks.h"
#include "config/field.h"
#include "config/readers.h"
#include "dns/encoding.h"

/// The schema: one row per key, in the order of docs/reference/configuration.md. A section is read
/// after all sections to which it may refer.
namespace pando::config {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxStoreBytes = std::uint64_t{32} << 30;  // reach of a reference
inline constexpr std::int64_t kMsPerMinute = 60'000, kMsPerHour = 3'600'000;

inline constexpr std::pair<std::string_view, LogFormat> kLogFormats[] = {
    {"text", LogFormat::kText}, {"json", LogFormat::kJson}};
inline constexpr std::pair<std::string_view, Verify> kVerifyWords[] = {
    {"host-crash", Verify::kHostCrash}, {"always", Verify::kAlways}};
inline constexpr std::pair<std::string_view, SerialPolicy> kSerialPolicies[] = {
    {"increment", SerialPolicy::kIncrement},
    {"unixtime", SerialPolicy::kUnixtime},
    {"date", SerialPolicy::kDate}};
inline constexpr std::pair<std::string_view, std::uint8_t> kSigningAlgorithms[] = {
    {"RSASHA256", 8},        {"RSASHA512", 10}, {"ECDSAP256SHA256", 13},
    {"ECDSAP384SHA384", 14}, {"ED25519", 15},   {"ED448", 16}};
inline constexpr std::pair<std::string_view, PolicyKeys> kPolicyKeys[] = {
    {"csk", PolicyKeys::kCsk}, {"ksk-zsk", PolicyKeys::kKskZsk}};
inline constexpr std::pair<std::string_view, KeyRolls> kKeyRolls[] = {
    {"manual", KeyRolls::kManual}, {"auto", KeyRolls::kAuto}};
inline constexpr std::pair<std::string_view, Nsec3Use> kNsec3Uses[] = {
    {"off", Nsec3Use::kOff}, {"on", Nsec3Use::kOn}, {"opt-out", Nsec3Use::kOptOut}};
inline constexpr std::pair<std::string_view, SignaturePolicy> kSignaturePolicies[] = {
    {"off", SignaturePolicy::kOff},
    {"warn", SignaturePolicy::kWarn},
    {"refuse", SignaturePolicy::kRefuse}};
inline constexpr std::pair<std::string_view, Catalog::Role> kCatalogRoles[] = {
    {"consumer", Catalog::Role::kConsumer}, {"producer", Catalog::Role::kProducer}};

inline constexpr std::pair<std::string_view, Dnstap::Messages> kDnstapMessages[] = {
    {"queries", Dnstap::Messages::kQueries},
    {"responses", Dnstap::Messages::kResponses},
    {"updates", Dnstap::Messages::kUpdates}};

inline constexpr std::pair<std::string_view, XdpInterface::Mode> kXdpModes[] = {
    {"auto", XdpInterface::Mode::kAuto},
    {"native", XdpInterface::Mode::kNative},
    {"generic", XdpInterface::Mode::kGeneric}};

inline constexpr bool kRequired = true;

inline constexpr Field<TlsPair> kServerTlsFields[] = {
    field<&TlsPair::certificate, read_path>("certificate", Apply::kLive, kRequired),
    field<&TlsPair::key, read_path>("key", Apply::kLive, kRequired),
};

inline constexpr Field<Cookies> kCookieFields[] = {
    secret_field<&Cookies::secrets, read_cookie_secrets>("secrets"),
};

inline constexpr Field<RateLimit> kRateLimitFields[] = {
    field<&RateLimit::responses, read_number<0, 1'000'000>>("responses"),
    field<&RateLimit::slip, read_number<0, 100>>("slip"),
    field<&RateLimit::ipv4_prefix, read_number<1, 32>>("ipv4-prefix"),
    field<&RateLimit::ipv6_prefix, read_number<1, 128>>("ipv6-prefix"),
    field<&RateLimit::exempt, read_prefixes>("exempt"),
};

inline constexpr Field<Log> kLogFields[] = {
    word_field<&Log::level, kLogLevels>("level"),
    word_field<&Log::format, kLogFormats>("format"),
};

inline constexpr Field<Dnstap> kDnstapFields[] = {
    field<&Dnstap::socket, read_path>("socket", Apply::kLive, kRequired),
    field<&Dnstap::sample, read_number<1, 1'000'000>>("sample"),
    word_list_field<&Dnstap::messages, kDnstapMessages>("messages"),
};

inline constexpr Field<QueryLog> kQueryLogFields[] = {
    field<&QueryLog::file, read_path>("file"),
    field<&QueryLog::socket, read_path>("socket"),
    field<&QueryLog::sample, read_number<1, 1'000'000>>("sample"),
};

inline constexpr Field<XdpInterface> kXdpFields[] = {
    field<&XdpInterface::interface, read_interface>("interface", Apply::kLive, kRequired),
    field<&XdpInterface::queues, read_number<0, 64>>("queues"),
    word_field<&XdpInterface::mode, kXdpModes>("mode"),
};

inline constexpr Field<Server> kServerFields[] = {
    field<&Server::listen, read_endpoints_at<53>>("listen"),
    field<&Server::listen_tls, read_endpoints_at<853>>("listen-tls"),  // RFC 7858 §3.1
    nested<&Server::tls, kServerTlsFields>("tls"),
    field<&Server::proxy_protocol_from, read_prefixes>("proxy-protocol-from"),
    field<&Server::workers, read_workers>("workers"),
    field<&Server::cpu_affinity, read_bool>("cpu-affinity", Apply::kRestart),
    field<&Server::run_directory, read_path>("run-directory", Apply::kRestart),
    field<&Server::user, read_text>("user", Apply::kRestart),
    field<&Server::worker_user, read_text>("worker-user", Apply::kRestart),
    field<&Server::control_group, read_text>("control-group", Apply::kRestart),
    field<&Server::identity, read_text>("identity"),
    field<&Server::version, read_text>("version"),
    // RFC 6891 §6.2.3: never below 512. Above 4096 a larger answer only causes IP fragments.
    field<&Server::udp_payload, read_number<512, 4096>>("udp-payload"),
    field<&Server::minimal_responses, read_bool>("minimal-responses"),
    nested<&Server::cookies, kCookieFields>("cookies"),
    nested<&Server::rate_limit, kRateLimitFields>("rate-limit"),
    field<&Server::transfer_source, read_address>("transfer-source"),
    field<&Server::md5, read_bool>("md5"),
    nested<&Server::log, kLogFields>("log"),
    nested<&Server::dnstap, kDnstapFields, check_dnstap>("dnstap"),
    nested<&Server::query_log, kQueryLogFields, check_query_log>("query-log"),
    list_of<&Server::xdp, kXdpFields, check_new_xdp>("xdp"),
};

inline constexpr Field<Checkpoint> kCheckpointFields[] = {
    field<&Checkpoint::interval, read_duration_in<1000, 24 * kMsPerHour>>("interval"),
    size_field<&Checkpoint::journal, kMiB, kMaxStoreBytes>("journal"),
};

inline constexpr Field<StoreSettings> kStoreFields[] = {
    field<&StoreSettings::path, read_path>("path", Apply::kRestart),
    field<&StoreSettings::image, read_path>("image", Apply::kRestart),
    size_field<&StoreSettings::size_limit, kMiB, kMaxStoreBytes>("size-limit",
                                                                          Apply::kRestart),
    field<&StoreSettings::journal, read_path>("journal", Apply::kRestart),
    size_field<&StoreSettings::journal_limit, kMiB, kNoMaximum>("journal-limit"),
    nested<&StoreSettings::checkpoint, kCheckpointFields>("checkpoint"),
    word_field<&StoreSettings::verify, kVerifyWords>("verify", Apply::kRestart),
};

inline constexpr Field<Limits> kLimitFields[] = {
    field<&Limits::rrset_records, read_number<1, 65535>>("rrset-records"),
    field<&Limits::name_types, read_number<1, 65535>>("name-types"),
    field<&Limits::zone_records, read_number<0, kNoMaximum>>("zone-records"),
    field<&Limits::tcp_clients, read_number<1, 1'000'000>>("tcp-clients"),
    field<&Limits::tcp_idle, read_duration_in<100, kMsPerHour>>("tcp-idle"),
    field<&Limits::tls_clients, read_number<1, 1'000'000>>("tls-clients"),
    field<&Limits::tls_idle, read_duration_in<100, kMsPerHour>>("tls-idle"),
    field<&Limits::transfers_in, read_number<1, 10'000>>("transfers-in"),
    field<&Limits::transfers_in_per_primary, read_number<1, 10'000>>("transfers-in-per-primary"),
    field<&Limits::transfer_time, read_duration_in<1000, 7 * 24 * kMsPerHour>>("transfer-time"),
    field<&Limits::transfer_size, read_size_or_share>("transfer-size"),
    field<&Limits::refresh, read_duration_range>("refresh"),
    size_field<&Limits::history, 0, kMaxStoreBytes>("history"),
    field<&Limits::history_total, read_size_or_share>("history-total"),
    size_field<&Limits::snapshots, 0, kMaxStoreBytes>("snapshots"),
    field<&Limits::pin_time, read_duration_in<1000, 24 * kMsPerHour>>("pin-time"),
    size_field<&Limits::pinned_bytes, kMiB, kMaxStoreBytes>("pinned-bytes"),
    field<&Limits::removed_zones, read_duration_in<0, 3650 * 24 * kMsPerHour>>("removed-zones"),
};

inline constexpr Field<Key> kKeyFields[] = {
    field<&Key::name, read_name>("name", Apply::kLive, kRequired),
    field<&Key::algorithm, read_algorithm>("algorithm"),
    secret_field<&Key::secret, read_secret>("secret"),
    other_form<&Key::secret, read_secret_file>("secret-file"),
    field<&Key::session_file, read_path>("session-file"),
};

inline constexpr auto show_pins = [](const std::vector<Bytes>& pins) -> Shown {
  if (pins.empty()) return std::nullopt;
  return flow_list(pins, [](const Bytes& pin) { return yaml_scalar(dns::base64_encode(pin)); });
};
inline constexpr Field<RemoteTls> kRemoteTlsFields[] = {
    field<&RemoteTls::hostname, read_host_name>("hostname"),
    field<&RemoteTls::ca, read_path>("ca"),
    field<&RemoteTls::pins, read_pins, show_pins>("pins"),
    field<&RemoteTls::certificate, read_path>("certificate"),
    field<&RemoteTls::key, read_path>("key"),
};

inline constexpr Field<Remote> kRemoteFields[] = {
    field<&Remote::name, read_text>("name", Apply::kLive, kRequired),
    field<&Remote::address, read_endpoints_at<kPortByTransport>>("address", Apply::kLive,
                                                                 kRequired),
    field<&Remote::key, read_key_reference>("key"),
    nested<&Remote::tls, kRemoteTlsFields, check_remote_tls>("tls"),
};

inline constexpr Field<DnssecPolicy> kDnssecPolicyFields[] = {
    field<&DnssecPolicy::name, read_text>("name", Apply::kLive, kRequired),
    word_field<&DnssecPolicy::algorithm, kSigningAlgorithms>("algorithm"),
    word_field<&DnssecPolicy::keys, kPolicyKeys>("keys"),
    word_field<&DnssecPolicy::rolls, kKeyRolls>("rolls"),
    field<&DnssecPolicy::validity, read_duration_in<kMsPerMinute, 365 * 24 * kMsPerHour>>(
        "validity"),
    field<&DnssecPolicy::refresh, read_duration_in<0, 365 * 24 * kMsPerHour>>("refresh"),
    field<&DnssecPolicy::propagation, read_duration_in<0, 30 * 24 * kMsPerHour>>("propagation"),
    field<&DnssecPolicy::parent_ds_ttl, read_duration_in<0, 30 * 24 * kMsPerHour>>("parent-ds-ttl"),
    field<&DnssecPolicy::cds, read_bool>("cds"),
    field<&DnssecPolicy::ds_check, read_text>("ds-check"),
    field<&DnssecPolicy::make_keys, read_bool>("make-keys"),
    word_field<&DnssecPolicy::nsec3, kNsec3Uses>("nsec3"),
};

inline constexpr Field<HttpKey> kHttpKeyFields[] = {
    field<&HttpKey::name, read_text>("name", Apply::kLive, kRequired),
    secret_field<&HttpKey::secret, read_text_secret>("secret"),
    other_form<&HttpKey::secret, read_text_secret_file>("secret-file"),
    word_field<&HttpKey::role, kHttpRoles>("role"),
    field<&HttpKey::zones, read_zone_patterns>("zones"),
};

inline constexpr Field<TlsPair> kHttpTlsFields[] = {
    field<&TlsPair::certificate, read_path>("certificate", Apply::kRestart, kRequired),
    field<&TlsPair::key, read_path>("key", Apply::kRestart, kRequired),
};

inline constexpr Field<Http> kHttpFields[] = {
    field<&Http::listen, read_endpoints_at<8053>>("listen", Apply::kRestart),
    list_of<&Http::keys, kHttpKeyFields, check_new_http_key>("keys"),
    nested<&Http::tls, kHttpTlsFields>("tls", Apply::kRestart),
    field<&Http::user, read_text>("user", Apply::kRestart),
    // Prometheus keeps each zone's series in memory, so their number is the operator's choice.
    field<&Http::metrics_zones, read_number<0, 100'000>>("metrics-zones", Apply::kRestart),
    field<&Http::template_name, read_template_reference>("template"),
    field<&Http::hosts, read_host_names>("hosts"),
};

inline constexpr Field<CatalogGroup> kCatalogGroupFields[] = {
    field<&CatalogGroup::name, read_text>("name", Apply::kLive, kRequired),
    field<&CatalogGroup::template_name, read_template_reference>("template", Apply::kLive,
                                                                 kRequired),
};

inline constexpr Field<Catalog> kCatalogFields[] = {
    field<&Catalog::zone, read_name>("zone", Apply::kLive, kRequired),
    word_field<&Catalog::role, kCatalogRoles>("role", Apply::kLive, kRequired),
    field<&Catalog::primaries, read_remote_references>("primaries"),
    field<&Catalog::template_name, read_template_reference>("template"),
    list_of<&Catalog::groups, kCatalogGroupFields, check_new_group>("groups"),
    field<&Catalog::members_below, read_names>("members-below"),
    field<&Catalog::removal_grace, read_duration_in<0, 365 * 24 * kMsPerHour>>("removal-grace"),
};

/// Keys of a zone that a template cannot have.
struct ZoneHead {
  dns::Name name;
  std::string file;
  std::string template_name;
};
inline constexpr Field<ZoneHead> kZoneHeadFields[] = {
    field<&ZoneHead::name, read_name>("name", Apply::kLive, kRequired),
    field<&ZoneHead::file, read_relative_path>("file"),
    field<&ZoneHead::template_name, read_template_reference>("template"),
};

struct TemplateHead {
  std::string name;
};
inline constexpr Field<TemplateHead> kTemplateHeadFields[] = {
    field<&TemplateHead::name, read_text>("name", Apply::kLive, kRequired),
};

/// Everybody may query unless something else is written. No rules say the same with one rule, so
/// a comment stands in place of the key.
inline constexpr auto show_query_rules = [](const zone::Acl& rules) -> Shown {
  return rules == ZoneOptions().allow_query ? Shown("everybody") : shown(rules);
};
constexpr Field<ZoneOptions> make_allow_query_field() {
  auto row = field<&ZoneOptions::allow_query, read_acl, show_query_rules>("allow-query");
  row.show = [](const Field<ZoneOptions>& shown_row, const ZoneOptions& zone, SettingLines& out) {
    if (zone.allow_query == ZoneOptions().allow_query)
      out.add_comment(fmt::format("{}: everybody", shown_row.name));
    else
      out.add(shown_row.name, *shown(zone.allow_query));
  };
  return row;
}
inline constexpr Field<ZoneOptions> kAllowQueryField = make_allow_query_field();

inline constexpr auto show_dnssec_policy = [](const std::string& policy) -> Shown {
  return policy.empty() ? Shown(std::string(kNoDnssecPolicy)) : shown(policy);
};

/// Keys that zones and templates have in common.
inline constexpr Field<ZoneOptions> kZoneOptionFields[] = {
    field<&ZoneOptions::primaries, read_remote_references>("primaries"),
    kAllowQueryField,
    field<&ZoneOptions::allow_transfer, read_acl>("allow-transfer"),
    field<&ZoneOptions::allow_update, read_update_acl>("allow-update"),
    field<&ZoneOptions::allow_notify, read_acl>("allow-notify"),
    field<&ZoneOptions::notify, read_remote_references>("notify"),
    field<&ZoneOptions::notify_delay, read_duration_in<0, kMsPerHour>>("notify-delay"),
    word_field<&ZoneOptions::serial_policy, kSerialPolicies>("serial-policy"),
    field<&ZoneOptions::export_interval, read_duration_or_off>("export-interval"),
    field<&ZoneOptions::catalog, read_catalog_reference>("catalog"),
    field<&ZoneOptions::catalog_group, read_text>("catalog-group"),
    field<&ZoneOptions::forward_updates, read_bool>("forward-updates"),
    field<&ZoneOptions::member_of, read_member_of>("member-of"),
    word_field<&ZoneOptions::verify, kSignaturePolicies>("verify"),
    field<&ZoneOptions::verify_command, read_command>("verify-command"),
    field<&ZoneOptions::verify_time, read_duration_in<1000, kMsPerHour>>("verify-time"),
    field<&ZoneOptions::dnssec, read_dnssec_policy, show_dnssec_policy>("dnssec"),
};

/// Sections to which templates and zones may refer.
inline constexpr Field<Settings> kFirstSections[] = {
    nested<&Settings::server, kServerFields, check_server>("server"),
    nested<&Settings::store, kStoreFields, check_store>("store"),
    nested<&Settings::limits, kLimitFields>("limits"),
    list_of<&Settings::keys, kKeyFields, check_new_key>("keys"),
    list_of<&Settings::remotes, kRemoteFields, complete_new_remote>("remotes"),
    list_of<&Settings::dnssec_policies, kDnssecPolicyFields, check_new_dnssec_policy>(
        "dnssec-policies"),
};
/// Sections that refer to templates. Zones may refer to catalogs.
inline constexpr Field<Settings> kLaterSections[] = {
    nested<&Settings::http, kHttpFields, check_http>("http", Apply::kRestart),
    list_of<&Settings::catalogs, kCatalogFields, check_new_catalog>("catalogs"),
};

}  // namespace pando::config
