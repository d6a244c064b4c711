#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dns/folded_key.h"
#include "manager/change/zone_signers.h"
#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/io/store_file.h"
#include "manager/signing/keys/folder_tasks.h"
#include "manager/signing/keys/zone_keys.h"
#include "manager/signing/signed_zone.h"
#include "manager/signing/signing_clock.h"
#include "manager/signing/signing_stage.h"

namespace pando::manager {

/// The zones of the configuration that this server signs (`zones[].dnssec`), with their keys and
/// what is known of them. A pool thread reads the keys, and makes those of new zones. Keys that
/// cannot be used are tried again until they can: meanwhile the zone is served as it is, and its
/// changes fail.
///
/// Lives on the commit thread.
class SignedZones final : public ZoneSigners {
 public:
  static constexpr std::chrono::seconds kRetry{10};
  using Ready = std::function<void(const dns::Name& zone)>;
  using Unusable = std::function<void(const dns::Name& zone, std::uint64_t refresh)>;
  using Done = std::function<void(const Status& status)>;

  /// References outlive the object; `pool` is joined before its destruction.
  SignedZones(asio::io_context& io, asio::thread_pool& pool, Files& files,
              const Committer& committer, SigningClock::Sources clocks)
      : folders_(io, pool, files), committer_(committer), clock_(std::move(clocks)) {}

  /// `ready` is called when the keys of a zone have become usable, or sign otherwise than before.
  /// `unusable` is called each time that the keys of a zone cannot be used, with the policy's
  /// `refresh` in seconds.
  void on_ready(Ready ready, Unusable unusable) {
    ready_ = std::move(ready);
    unusable_ = std::move(unusable);
  }
  /// Takes the zones of `runtime`; with `only`, these alone are looked up there.
  void configure(const RuntimePtr& runtime, const std::vector<dns::Name>* only = nullptr);
  /// Tries unusable keys again, each kRetry, and begins stages whose time has come; to be called
  /// each second or so.
  void check(std::chrono::steady_clock::time_point now);
  void stop() noexcept { folders_.stop(); }

  [[nodiscard]] Result<ZoneSignerPtr> signer_of(dns::NameView zone) const override;
  [[nodiscard]] std::optional<config::SerialPolicy> unsigning(dns::NameView zone) const override;
  [[nodiscard]] std::uint64_t now() const override { return clock_.now(); }
  bool begin_anew(const dns::Name& zone, std::function<void(const Status&)> then) override;
  [[nodiscard]] bool has(dns::NameView zone) const override;
  void when_known(dns::NameView zone, bool is_signed, Known known) override;
  /// Calls `visit(const dns::Name& zone, const ZoneSigner& signer)` for each zone whose keys can be
  /// used.
  template <class Visit>
  void for_each_ready(Visit&& visit) const {
    for (const auto& [key, zone] : zones_)
      if (zone.signer && *zone.signer && **zone.signer) visit(zone.name, ***zone.signer);
  }
  /// Calls `visit(const dns::Name& zone)` for each zone with a policy that comes behind `after`
  /// (none: for all), until it returns false.
  template <class Visit>
  void for_each_after(const std::optional<dns::Name>& after, Visit&& visit) const {
    auto at = after ? zones_.upper_bound(dns::folded_key(*after)) : zones_.begin();
    while (at != zones_.end() && visit(at->second.name)) ++at;
  }
  [[nodiscard]] bool empty() const noexcept { return zones_.empty(); }

  /// The zone's facts. Null: its folder of keys was not read, or has an error.
  [[nodiscard]] const SigningFacts* facts_of(dns::NameView zone) const;
  [[nodiscard]] SigningState state_of(dns::NameView zone) const;
  /// What the zone's policy wants of keys and waits.
  struct Wanted {
    KeyLayout layout;
    SigningWaits waits;
    std::string ds_check;  ///< remote that is asked for DS records; empty: none
  };
  [[nodiscard]] Wanted wanted(dns::NameView zone) const;
  using EditFacts = std::function<void(SigningFacts& facts)>;
  /// Changes the facts of a zone in its file, in a pool thread. When they are durable, the zone's
  /// stage follows from them, and `done` is called. Precondition: facts_of(zone).
  void edit_facts(const dns::Name& zone, EditFacts edit, Done done);
  /// Has a pool thread do `work` on the zone's folder. The keys and facts that it has then count from
  /// then on; changes of the zone go on meanwhile.
  using FolderWork = std::function<Status(Files& files, const std::string& journal)>;
  /// `before`, if given, gets the result before the keys are used.
  void change_folder(const dns::Name& zone, FolderWork work, Done done, Done before = nullptr);
  /// Has a pool thread read the zone's folder again. Changes of the zone fail until then.
  void read_again(const dns::Name& zone);
  /// Takes a key from a file of ours into the folder of a zone that is not signed yet.
  void import_key(const dns::Name& zone, std::shared_ptr<const Fd> file,
                  std::function<void(const Result<dns::SigningKey>& key)> done);

  /// Why the zone's keys cannot be used, in one line; empty: they can, or the zone is not signed
  /// here.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  struct Counts {
    std::size_t zones = 0;         ///< with a policy
    std::size_t unusable = 0;      ///< whose keys or facts cannot be used
    std::size_t ds_wanted = 0;     ///< that wait for their parents' DS records
    std::size_t no_ds_wanted = 0;  ///< that wait for these to go
  };
  [[nodiscard]] Counts counts() const;

  /// The operator says that the host's clock is right.
  void confirm_clock();
  /// See SigningClock::problem().
  [[nodiscard]] std::string clock_problem() const { return clock_.problem(); }

 private:
  using Zone = SignedZone;
  using Zones = std::map<std::string, Zone>;  // by dns::folded_key()

  [[nodiscard]] Zone* find(dns::NameView zone);
  [[nodiscard]] const Zone* find(dns::NameView zone) const;
  void take(const config::Settings& settings, const config::ZoneRef& zone);
  void begin_waits_anew();
  void forget(const std::string& key);
  void read_unread();
  void read(std::vector<WantedKeys> wanted);
  void keys_read(const std::vector<WantedKeys>& wanted, std::vector<Result<OpenedKeys>>&& opened);
  void set_opened(Zone& zone, Result<OpenedKeys>&& opened);
  void update_signer(Zone& zone);
  void set_facts(const dns::Name& zone, const SigningFacts& facts);
  [[nodiscard]] SigningState state_of(const Zone& zone) const;
  void set_stage(Zone& zone, const SigningState& state);
  void set_due(Zone& zone, std::uint64_t until);
  /// Why nothing may be signed now by the host's clock; empty: it may.
  [[nodiscard]] std::string clock_doubt(const Zone& zone) const;

  FolderTasks folders_;
  const Committer& committer_;
  SigningClock clock_;
  Ready ready_;
  Unusable unusable_;
  Zones zones_;
  std::set<std::pair<std::uint64_t, std::string>> due_;  // when a stage begins, and the zone's key
  bool is_configured_ = false;   // zones come
  bool has_configured_ = false;  // later ones are added by a reload
  bool is_reading_ = false;
  std::chrono::steady_clock::time_point next_retry_{};
  std::string retried_;  // key of the last zone whose keys were tried again
};

/// RDATA of the DS records (SHA-256) that the parent is to have, as text; empty: the keys are not
/// known, or the version is not signed by them (yet).
[[nodiscard]] std::vector<std::string> ds_records(const ZoneSigners& signers,
                                                  const zone::ZoneView& served);

}  // namespace pando::manager
