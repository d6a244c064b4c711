#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "manager/change/change_road.h"
#include "manager/checkpoint/checkpointer.h"
#include "manager/checkpoint/image_copying.h"
#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/commit/zone_snapshots.h"
#include "manager/dnssec/signature_watch.h"
#include "manager/io/frozen_zones.h"
#include "manager/notify/notifier.h"
#include "manager/secondary/secondary_zones.h"
#include "manager/signing/signing_service.h"
#include "manager/start/removed_zones.h"
#include "manager/support/heap_upkeep.h"
#include "manager/update/update_queue.h"
#include "manager/update/update_service.h"
#include "manager/upkeep/huge_pages.h"
#include "manager/upkeep/journal_upkeep.h"
#include "manager/upkeep/store_upkeep.h"
#include "manager/verifier/zone_verifier.h"
#include "manager/zonefile/zone_copies.h"
#include "manager/zonefile/zone_exports.h"
#include "manager/zonefile/zone_file_loads.h"
#include "manager/zonefile/zone_loader.h"

namespace pando::manager {

class Listeners;
class TlsCertificates;
class TlsProcesses;
class WorkerPool;
class ZoneLists;
struct OpenedData;
namespace systemd {
class Readiness;
}

/// The configuration in force. A reload replaces all of it but the path.
struct CurrentConfiguration {
  std::string path;
  RuntimePtr runtime;
  std::uint64_t fingerprint = 0;  ///< of the files that the store is in line with; 0: with none
  std::uint64_t read_at = 0;      ///< seconds since 1970
  std::uint64_t reads = 0;        ///< times that it was read: several may be within a second
  std::string list_problem{};     ///< why the last reload could not use the list of added zones
  /// The level that a command has set, until the next reload.
  std::optional<config::LogLevel> log_level{};
};

/// The parts that work on the store as a whole. Later parts refer to earlier ones.
struct StoreServices {
  std::unique_ptr<Committer> committer;
  std::unique_ptr<Checkpointer> checkpointer;   ///< null: no image is written
  std::unique_ptr<ImageCopying> copying_image;  ///< null: the store has all of its chunks
  std::unique_ptr<StoreUpkeep> upkeep;
  std::unique_ptr<HugePages> huge_pages;
  std::unique_ptr<HeapUpkeep> heap_upkeep;
  std::unique_ptr<JournalUpkeep> journal_upkeep;
  std::unique_ptr<ChangeRoad> road;
  std::unique_ptr<ZoneSnapshots> snapshots;

  /// kExists while chunks come from the image: nothing that stays may be written from chunks
  /// whose checksums have not been compared yet.
  [[nodiscard]] Status check_whole() const;
};

/// The parts that work on single zones. Later parts refer to earlier ones.
struct ZoneServices {
  std::unique_ptr<FrozenZones> frozen;
  std::unique_ptr<SigningService> signing;
  std::unique_ptr<SignatureWatch> signatures;
  std::unique_ptr<ZoneVerifiers> verifiers;
  std::unique_ptr<ZoneLoader> loader;
  std::unique_ptr<ZoneCopies> copies;
  std::unique_ptr<ZoneFileLoads> loads;
  std::unique_ptr<ZoneExports> exports;
  std::unique_ptr<RemovedZones> removed;
  std::unique_ptr<Refresher> refresher;
  std::unique_ptr<SecondaryZones> secondaries;
  std::unique_ptr<Notifier> notifier;
  std::unique_ptr<UpdateForwarder> forwarder;
  std::unique_ptr<UpdateService> updates;
  std::unique_ptr<UpdateQueue> update_queue;
};

/// The parts of a running manager, for reloads and commands. All outlive their users.
struct ServerParts {
  CurrentConfiguration& configuration;
  OpenedData& data;
  StoreServices& services;
  ZoneServices& zones;
  ZoneLists& lists;
  Listeners& listeners;
  WorkerPool& workers;
  TlsProcesses& tls;
  systemd::Readiness& readiness;
  TlsCertificates& certificates;
};

/// Passes the zones of `runtime` to the exports, unless the image is still being copied: data of a
/// damaged image must not become a zone's file. `may_differ`: see ZoneExports::configure().
void configure_exports(const StoreServices& services, ZoneServices& zones,
                       const RuntimePtr& runtime, bool may_differ = true);

/// Logs what reading the journal found.
void log_note(const JournalNote& note);

/// A reader of the journal's history, for threads of the pool.
[[nodiscard]] std::shared_ptr<HistorySource> make_history(Journal& journal);

/// Processors that this process may run on.
[[nodiscard]] std::uint32_t usable_processors();

/// Workers that the configuration asks for: a fixed number, or one for each processor.
[[nodiscard]] std::uint32_t wanted_workers(const config::Settings& settings);

}  // namespace pando::manager
