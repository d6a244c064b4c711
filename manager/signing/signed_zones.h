#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manager/change/zone_signers.h"
#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/io/store_file.h"
#include "manager/signing/zone_keys.h"

namespace pando::manager {

/// The zones of the configuration that this server signs (`zones[].dnssec`), with their keys. A
/// pool thread reads the keys, and makes those of new zones. Keys that cannot be used are tried
/// again until they can: meanwhile the zone is served as it is, and its changes fail.
///
/// Lives on the commit thread.
class SignedZones final : public ZoneSigners {
 public:
  static constexpr std::chrono::seconds kRetry{10};
  using Clock = std::function<std::uint64_t()>;  ///< seconds since 1970
  using Ready = std::function<void(const dns::Name& zone)>;

  /// References outlive the object; `pool` is joined before its destruction.
  SignedZones(asio::io_context& io, asio::thread_pool& pool, Files& files,
              const Committer& committer, Clock clock)
      : io_(io), pool_(pool), files_(files), committer_(committer), clock_(std::move(clock)) {}

  /// `ready` is called when the keys of a zone have become usable.
  void on_ready(Ready ready) { ready_ = std::move(ready); }
  /// Takes the zones of `runtime`; with `only`, these alone are looked up there.
  void configure(const RuntimePtr& runtime, const std::vector<dns::Name>* only = nullptr);
  /// Tries unusable keys again, each kRetry; to be called regularly.
  void retry(std::chrono::steady_clock::time_point now);
  void stop() noexcept { stopped_ = true; }

  [[nodiscard]] Result<ZoneSignerPtr> signer_of(dns::NameView zone) const override;
  [[nodiscard]] std::uint64_t now() const override { return clock_(); }
  void when_known(dns::NameView zone, Known known) override;
  /// Calls `visit(const dns::Name& zone, const ZoneSigner& signer)` for each zone whose keys can be
  /// used.
  template <class Visit>
  void for_each_ready(Visit&& visit) const {
    for (const auto& [key, zone] : zones_)
      if (zone.signer && *zone.signer) visit(zone.name, ***zone.signer);
  }
  /// Why the zone's keys cannot be used, in one line; empty: they can, or the zone is not signed
  /// here.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  /// RDATA of the DS records (SHA-256) of the keys that sign the zone's DNSKEY set, as text; empty:
  /// the keys are not known, or the zone is not signed by them (yet).
  [[nodiscard]] std::vector<std::string> ds_records(dns::NameView zone) const;
  [[nodiscard]] bool empty() const noexcept { return zones_.empty(); }

 private:
  struct Zone {
    dns::Name name;
    std::uint8_t algorithm = 0;
    ZoneSigner::Options signing;
    std::optional<Result<ZoneSignerPtr>> signer{};  // nullopt: the keys were not read yet
    std::vector<Known> waiting{};
  };
  void take(const config::Settings& settings, const config::ZoneRef& zone);
  void forget(const std::string& key);
  void read_unread();
  void read(std::vector<WantedKeys> wanted);
  [[nodiscard]] WantedKeys wanted_keys(const Zone& zone) const;
  void keys_read(const std::vector<WantedKeys>& wanted,
                 std::vector<Result<ZoneSignerPtr>>&& opened);
  void set_signer(Zone& zone, Result<ZoneSignerPtr>&& signer);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Files& files_;
  const Committer& committer_;
  Clock clock_;
  Ready ready_;
  std::string journal_;
  std::map<std::string, Zone> zones_;  // by dns::folded_key()
  bool is_configured_ = false;
  bool is_reading_ = false;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point next_retry_{};
  std::string retried_;  // key of the last zone whose keys were tried again
};

}  // namespace pando::manager
