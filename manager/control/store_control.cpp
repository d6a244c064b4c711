#include "manager/control/store_control.h"

#include <algorithm>
#include <asio/post.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/audit_result.h"
#include "ipc/control_json.h"
#include "manager/checkpoint/placed_dump.h"
#include "manager/checkpoint/store_copy.h"
#include "manager/checkpoint/store_dump.h"
#include "manager/inspect/journal_print.h"
#include "manager/journal/journal_identity.h"
#include "shm/inspect/inspection.h"
#include "zone/audit/audit.h"
#include "zone/read/store_view.h"

namespace pando::manager {

using nlohmann::json;

namespace {

/// A reply stays below ipc::kMaxReplyBytes with this many.
constexpr std::size_t kMaxAuditedSnapshots = 10'000;

/// Adds the bytes of the file outside blocks: the store's tables, room in chunks that are in use,
/// and chunks that are free, wait for readers or belong to an unpublished version. The root block
/// of some hundred bytes counts as room. While an image is borrowed, its chunks are in no file of
/// ours, so the sum exceeds the memory by their size.
void add_room(ipc::Counters& bytes, const shm::StoreStats& stats,
              const std::vector<std::uint32_t>& occupied) {
  std::uint64_t blocks = 0;
  std::uint64_t chunks = 0;
  for (const std::uint32_t live : occupied) {
    blocks += live;
    chunks += live == 0 ? 0 : 1;
  }
  const std::uint64_t used = chunks * shm::kChunkBytes;
  const std::uint64_t free = stats.spare_chunks * shm::kChunkBytes;
  const std::uint64_t waiting = stats.waiting_chunks * shm::kChunkBytes;
  const std::uint64_t in_use = stats.chunks_in_use * shm::kChunkBytes;
  const std::uint64_t private_bytes = in_use - std::min(in_use, used + waiting);
  bytes["room in chunks"] = used - blocks;
  bytes["free chunks"] = free;
  bytes["waiting for readers"] = waiting;
  bytes["being built"] = private_bytes;
  const std::uint64_t known = used + free + waiting + private_bytes;
  bytes["tables"] = stats.memory_bytes > known ? stats.memory_bytes - known : 0;
}

/// Walks the present version in a pool thread, pinned, while the store goes on
/// (zone/audit/audit.h): all of it, with a comparison of each chunk's count, or one zone. Call on
/// the commit thread, where `done` is called, too; all references outlive the pool's threads.
/// kNotFound: no such zone.
void audit_store(shm::Store& store, shm::SlotTable& slots, asio::io_context& io,
                 asio::thread_pool& pool, std::optional<dns::Name> zone,
                 std::function<void(Result<ipc::StoreAudit>)> done) {
  const shm::VersionInfo version = store.current();
  const shm::Window window = store.window();
  if (zone && !zone::StoreView(window, version.root, version.number).zone_at(*zone))
    return done(fail(Errc::kNotFound, "no zone {}", to_text(*zone)));
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(slots.pin_own(version.number));
  // The counts are those of the present version only now.
  auto occupied = zone ? std::vector<std::uint32_t>() : shm::occupancy(window);
  asio::post(pool, [=, &io, stats = store.stats(), occupied = std::move(occupied),
                    done = std::move(done)]() mutable {
    zone::Audit audit =
        zone ? zone::audit_zone(window, version.root, *zone) : zone::audit(window, version.root);
    if (!zone) zone::compare_chunks(audit, occupied);
    auto result = ipc::store_audit(std::move(audit), version.number, kMaxAuditedSnapshots);
    if (!zone) add_room(result.bytes, stats, occupied);
    asio::post(io, [pin = std::move(pin), result = std::move(result), done = std::move(done)] {
      done(result);
    });
  });
}

}  // namespace

StoreControl::StoreControl(asio::io_context& io, asio::thread_pool& pool, ServerParts parts,
                           std::function<void()> handed_over)
    : io_(io), pool_(pool), parts_(parts), handed_over_(std::move(handed_over)) {}

void StoreControl::add_to(CommandTable& table) {
  const auto add = [&](std::string_view verb, auto method) {
    table.add(verb, std::bind_front(method, this));
  };
  add(ipc::verb::kStoreAudit, &StoreControl::audit);
  add(ipc::verb::kStoreCheckpoint, &StoreControl::write_checkpoint);
  add(ipc::verb::kStoreCopy, &StoreControl::copy);
  add(ipc::verb::kStoreDump, &StoreControl::dump);
  add(ipc::verb::kJournalPrint, &StoreControl::print_records);
  add(ipc::verb::kHandOver, &StoreControl::hand_over);
}

void StoreControl::join() {
  if (writers_) writers_->pool().join();
}

/// The writers sleep most of the time, and in the pool each would block a thread that loads zones.
asio::thread_pool& StoreControl::writers() {
  constexpr std::size_t kCopyAndDump = 2;
  if (!writers_) writers_.emplace(kCopyAndDump);
  return writers_->pool();
}

void StoreControl::audit(const Request& request, const Reply& reply) {
  std::optional<dns::Name> zone;
  if (!request.name.empty()) {
    auto name = dns::Name::from_text(request.name);
    if (!name) return reply(pass(name));
    zone = *name;
  }
  audit_store(*parts_.data.store, *parts_.data.slots, io_, pool_, zone,
              [reply](const Result<ipc::StoreAudit>& result) { reply(as_json(result)); });
}

void StoreControl::write_checkpoint(const Request&, const Reply& reply) {
  Checkpointer* checkpointer = parts_.services.checkpointer.get();
  const std::string& unused = parts_.data.quarantined.unused();
  if (checkpointer == nullptr && !unused.empty())
    return reply(fail(Errc::kUnsupported, "no image is written: {}", unused));
  if (checkpointer == nullptr)
    return reply(fail(Errc::kUnsupported, "store.image is not configured"));
  checkpointer->write_now([reply](const Status& status) { reply(empty_result(status)); });
}

/// `may_replace`: as check_copy_target() takes it. A client that gives the file of a dump has
/// looked into the file that it replaces, as this process may not be able to.
Status StoreControl::check_target(const Request& request, bool (*may_replace)(ByteView)) const {
  const std::string& path = request.to;
  if (!path.starts_with('/')) return fail(Errc::kInvalid, "'{}': not an absolute path", path);
  const config::StoreSettings& store = parts_.configuration.runtime->settings.store;
  const bool is_dump = may_replace != nullptr;
  if (is_dump && request.descriptor)
    return check_not_own(path, store.journal, {store.image, store.path});
  if (request.descriptor)
    if (auto same = check_same_folder(*request.descriptor, path); !same) return same;
  return check_copy_target(native_files(), path, store.journal, {store.image, store.path},
                           may_replace);
}

void StoreControl::copy(const Request& request, const Reply& reply) {
  if (auto fine = check_target(request, nullptr); !fine) return reply(pass(fine));
  if (auto whole = parts_.services.check_whole(); !whole) return reply(pass(whole));
  if (std::exchange(copying_, true))
    return reply(fail(Errc::kExists, "another copy is being written"));
  if (parts_.services.checkpointer) parts_.services.checkpointer->mark_untrusted();
  OpenedData& data = parts_.data;
  copy_store(*data.store, *data.slots, *data.journal, io_, writers(), native_files(),
             {request.to, ending_}, [this, reply](const Status& status) {
               copying_ = false;
               reply(empty_result(status));
             });
}

void StoreControl::dump(const Request& request, const Reply& reply) {
  if (auto fine = check_target(request, zone::looks_like_dump); !fine) return reply(pass(fine));
  if (!request.descriptor) return write_dump(request.to, nullptr, reply);
  auto into = open_given(*request.descriptor);
  if (!into) return reply(pass(into));
  write_dump(request.to, std::move(*into), reply);
}

void StoreControl::write_dump(const std::string& path, std::shared_ptr<StoreFile> into,
                              const DumpDone& done) {
  if (!parts_.zones.loads->settled())
    return done(fail(Errc::kExists, "the zones are still being loaded"));
  if (auto whole = parts_.services.check_whole(); !whole) return done(pass(whole));
  if (std::exchange(dumping_, true))
    return done(fail(Errc::kExists, "another dump is being written"));
  OpenedData& data = parts_.data;
  const std::string& journal = parts_.configuration.runtime->settings.store.journal;
  auto owner = journal_identity(native_files(), journal);
  if (!owner) return done(pass(owner));
  DumpRequest request{path, *owner, make_history(*data.journal), ending_};
  request.into = std::move(into);
  dump_store(
      *data.store, *data.slots, *data.journal, io_, writers(), native_files(), std::move(request),
      [this, done](const Result<WrittenDump>& written) {
        dumping_ = false;
        if (!written) return done(pass(written));
        done(json(ipc::DumpResult{written->counts.zones, written->counts.records,
                                  written->counts.changesets, written->bytes, written->position}));
      });
}

/// Files that a snapshot replaces meanwhile are reported as damage on this page.
void StoreControl::print_records(const Request& request, const Reply& reply) {
  JournalPage page;
  page.from = request.position;
  page.records = std::clamp(request.limit, 1U, ipc::kZonePageRows);
  if (!request.name.empty()) {
    auto name = dns::Name::from_text(request.name);
    if (!name) return reply(pass(name));
    page.zone = *name;
  }
  asio::post(pool_, [this, reply, page, journal = parts_.data.journal->files()]() mutable {
    json result = print_journal(native_files(), std::move(journal), page);
    asio::post(io_, [reply, result = std::move(result)]() mutable { reply(std::move(result)); });
  });
}

/// A dump beside the journal is all that the next manager needs; later updates are in the journal.
void StoreControl::hand_over(const Request&, const Reply& reply) {
  write_dump(PlacedDump::path_in(parts_.configuration.runtime->settings.store.journal), nullptr,
             [this, reply](Result<json> written) {
               const bool done = written.has_value();
               reply(std::move(written));
               if (done) asio::post(io_, handed_over_);
             });
}

}  // namespace pando::manager
