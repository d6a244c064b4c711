#include "manager/control/store_audit.h"

#include <algorithm>
#include <asio/post.hpp>
#include <memory>

#include "ipc/audit_result.h"
#include "shm/inspect/inspection.h"
#include "zone/audit/audit.h"
#include "zone/read/store_view.h"

namespace pando::manager {

namespace {

/// A reply stays below ipc::kMaxReplyBytes with this many.
constexpr std::size_t kMostSnapshots = 10'000;

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

}  // namespace

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
    auto result = ipc::store_audit(std::move(audit), version.number, kMostSnapshots);
    if (!zone) add_room(result.bytes, stats, occupied);
    asio::post(io, [pin = std::move(pin), result = std::move(result), done = std::move(done)] {
      done(result);
    });
  });
}

}  // namespace pando::manager
