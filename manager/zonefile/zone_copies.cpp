#include "manager/zonefile/zone_copies.h"

#include <xxhash.h>

#include <asio/post.hpp>
#include <filesystem>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ipc/log.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/merge/merge_base.h"
#include "manager/zonefile/zone_file.h"

namespace pando::manager {

namespace {

/// False if the zone became primary or left the configuration while its copy was written.
bool is_copied(const zone::ZoneView& zone) { return zone && zone.loaded() && is_secondary(zone); }

/// Limits of a batch, which pins a version and records none of its zones before its end.
constexpr std::size_t kMaxBatchZones = 256;
constexpr std::uint64_t kMaxRecordsTogether = 50'000;

/// The state of the written file; nullopt if somebody else removed it immediately.
std::optional<zone::ZoneFileInfo> state_of(const std::string& path, std::uint64_t hash) {
  auto written = stat_source(path);
  if (written) written->hash = hash;
  return written;
}

std::string folder_before(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

void erase_copies(std::vector<std::string>& files, const config::ZoneTable& zones) {
  std::unordered_set<std::string> copies;
  for (std::size_t i = 0; i < zones.size(); ++i)
    if (zones[i].options->is_secondary()) {
      copies.insert(copy_name(zones[i].name));
      copies.insert(copy_name(zones[i].name) + kPartial);
    }
  std::erase_if(files, [&](const std::string& file) { return copies.contains(file); });
}

/// Leaves out the zones' own files in the folder, with all files that are named after them (of an
/// export, of an edit). A zone that was made primary may go on with its copy as its `file`.
void erase_zone_files(std::vector<std::string>& files, const std::string& folder,
                      const config::ZoneTable& zones) {
  const auto plain = [](const std::string& path) {
    return std::filesystem::path(path).lexically_normal();
  };
  const std::filesystem::path copies = plain(folder);
  for (std::size_t i = 0; i < zones.size() && !files.empty(); ++i) {
    if (zones[i].file.empty()) continue;
    const std::filesystem::path path = plain(zones.path(i));
    if (path.parent_path() != copies) continue;
    const std::string name = path.filename().string();
    std::erase_if(files, [&](const std::string& file) { return file.starts_with(name); });
  }
}

}  // namespace

/// Zones of one version with copies in one folder.
struct ZoneCopies::Batch {
  struct One {
    dns::Name zone;
    std::string path;
    dns::Serial serial;
    Copied written = fail(Errc::kNotFound, "the zone has gone");
  };
  zone::StoreView version;
  shm::SlotTable::OwnPin pin;
  std::vector<One> zones;

  void write(Files& files);
};

void ZoneCopies::Batch::write(Files& files) {
  std::vector<ZoneFileToWrite> loaded;
  std::vector<One*> written;
  for (One& one : zones) {
    const zone::ZoneView view = version.zone_at(one.zone);
    if (!view || !view.loaded()) continue;
    one.serial = view.serial();
    loaded.push_back({view, one.path});
    written.push_back(&one);
  }
  auto hashes = write_zone_files(files, loaded);
  for (std::size_t i = 0; i < hashes.size(); ++i)
    if (hashes[i])
      written[i]->written = state_of(written[i]->path, *hashes[i]);
    else
      written[i]->written = pass(hashes[i]);
}

std::string copy_name(dns::NameView zone) {
  // the limit of a file name is 255 bytes; suffixes need room
  constexpr std::size_t kMaxStem = 200;
  std::string text = to_text(dns::Name(zone).folded());
  if (text.size() > 1) text.pop_back();  // the root zone is nothing but the final dot
  std::string stem;
  for (const char c : text) {
    const bool dot = c == '.' && !stem.empty();
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (plain || dot)
      stem += c;
    else
      stem += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (stem.size() <= kMaxStem) return stem + ".zone";
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{}%{:016x}{:016x}.zone", stem.substr(0, 100), hash.high64, hash.low64);
}

ZoneCopies::ZoneCopies(asio::io_context& io, asio::thread_pool& pool, Files& files,
                       Committer& committer, shm::SlotTable& slots, std::string folder,
                       std::size_t most_batches)
    : io_(io),
      pool_(pool),
      files_(files),
      committer_(committer),
      slots_(slots),
      folder_(std::move(folder)),
      most_batches_(most_batches) {}

std::string ZoneCopies::path_of(const config::ZoneTable& zones, std::size_t index) const {
  std::string path = zones.path(index);
  return path.empty() ? fmt::format("{}/{}", folder_, copy_name(zones[index].name)) : path;
}

void ZoneCopies::configure(RuntimePtr runtime) {
  const std::lock_guard lock(mutex_);
  runtime_ = std::move(runtime);
}

void ZoneCopies::keep_only(const RuntimePtr& runtime) {
  configure(runtime);
  asio::post(pool_, [this] {
    auto files = files_.list(folder_);
    if (files) remove_others(std::move(*files));  // usually there is no such folder
  });
}

/// In a thread of the pool. Zones may come while files are removed, so the configuration in force
/// decides on each file. No lock is held meanwhile: the commit thread must not wait for a disk. So a
/// zone that comes back while its file is being removed has to be copied anew.
void ZoneCopies::remove_others(std::vector<std::string> files) {
  RuntimePtr compared;
  while (!files.empty()) {
    if (RuntimePtr now = in_force(); now != compared) {
      erase_copies(files, now->settings.zones);
      erase_zone_files(files, folder_, now->settings.zones);
      compared = std::move(now);
      continue;
    }
    static_cast<void>(files_.remove(folder_ + "/" + files.back()));
    files.pop_back();
  }
}

RuntimePtr ZoneCopies::in_force() const {
  const std::lock_guard lock(mutex_);
  return runtime_;
}

void ZoneCopies::write(const dns::Name& zone, std::string path, bool in_journal) {
  const auto [at, fresh] = running_.try_emplace(zone);
  Copy& copy = at->second;
  copy.path = std::move(path);
  copy.in_journal |= in_journal;
  copy.again = !copy.waits;
  if (!fresh) return;
  waiting_.push_back(zone);
  begin_batches();
}

void ZoneCopies::begin_batches() {
  while (batches_ < most_batches_) {
    const auto batch = next_batch();
    if (!batch) return;
    ++batches_;
    asio::post(pool_, [this, batch] {
      batch->write(files_);
      asio::post(io_, [this, batch] { ended(*batch); });
    });
  }
}

/// Null: no zone waits. A zone that has left or become primary while it waited needs no copy: the
/// path may be that of its own file now.
std::shared_ptr<ZoneCopies::Batch> ZoneCopies::next_batch() {
  if (waiting_.empty()) return nullptr;
  auto batch = std::make_shared<Batch>();
  batch->version = committer_.current();
  batch->pin = slots_.pin_own(batch->version.version());
  std::uint64_t records = 0;
  for (; !waiting_.empty() && batch->zones.size() < kMaxBatchZones; waiting_.pop_front()) {
    const auto at = running_.find(waiting_.front());
    const zone::ZoneView view = batch->version.zone_at(at->first);
    if (!view || (view.loaded() && !is_secondary(view))) {
      remove_if_left(at->first, at->second.path);
      running_.erase(at);
      continue;
    }
    records += view.loaded() ? view.record_count() : 0;
    if (!batch->zones.empty() &&
        (records > kMaxRecordsTogether ||
         folder_before(at->second.path) != folder_before(batch->zones.front().path)))
      break;
    at->second.waits = false;
    batch->zones.push_back({at->first, at->second.path, {}});
  }
  return batch->zones.empty() ? nullptr : batch;
}

void ZoneCopies::ended(const Batch& batch) {
  --batches_;
  for (const Batch::One& one : batch.zones) end(one.zone, one.serial, one.written);
  begin_batches();
}

void ZoneCopies::end(const dns::Name& zone, dns::Serial serial, const Copied& written) {
  const auto at = running_.find(zone);
  Copy& copy = at->second;
  ++(written ? written_ : failures_);
  if (written)
    log::info("zone_copied", "zone", to_text(zone), "serial", serial.value, "path", copy.path);
  else
    log::warning("zone_not_copied", "zone", to_text(zone), "path", copy.path, "reason",
                 written.error().text);
  if (std::exchange(copy.again, false)) {
    copy.waits = true;
    waiting_.push_back(zone);
    return;
  }
  const bool in_journal = copy.in_journal;
  if (written) remove_if_left(zone, copy.path);
  running_.erase(at);
  if (written && *written) record_merge_base({zone, serial, **written, in_journal});
}

/// Removes the copy of a zone that left while the copy was written: keep_only() could not see it.
void ZoneCopies::remove_if_left(const dns::Name& zone, const std::string& path) {
  const std::string file = copy_name(zone);
  if (!runtime_ || path != folder_ + "/" + file) return;
  const config::ZoneTable& zones = runtime_->settings.zones;
  const auto index = zones.find(zone);
  if (index && zones[*index].options->is_secondary()) return;
  asio::post(pool_, [this, file] { remove_others({file}); });
}

/// Records the copy as merge base in journal and store. If the journal cannot be written, the store
/// alone records the copy.
void ZoneCopies::record_merge_base(const Written& copy) {
  CommitRequest request;
  request.stage = [this, copy](Stage& stage) {
    stage.use_reserve(shm::Reserve::kHalf);
    return stage_merge_base(stage, copy);
  };
  request.done = [this, copy](const Result<std::uint64_t>& version) {
    if (version) return;
    log::warning("copy_not_recorded", "zone", to_text(copy.zone), "reason", version.error().text);
    committer_.edit(
        [this, copy](zone::Draft& draft) -> Status {
          if (!is_copied(draft.view().zone_at(copy.zone)) || running_.contains(copy.zone))
            return {};
          return draft.put_zone_source(copy.zone, copy.source);
        },
        [](const Status&) {}, shm::Reserve::kHalf);
  };
  committer_.submit(std::move(request));
}

/// Stages the merge base of a finished copy. If the zone has moved on, the copy only serves as a
/// base for later journal records. If a copy is being written, it belongs to a newer whole zone, so
/// the finished copy is not recorded.
Status ZoneCopies::stage_merge_base(Stage& stage, const Written& copy) const {
  const zone::ZoneView live = stage.draft.view().zone_at(copy.zone);
  if (!is_copied(live) || running_.contains(copy.zone)) return {};
  const bool moved = !(live.serial() == copy.serial);
  if (copy.in_journal && !moved) {
    stage.journal.push_back(base_entry(live));
    stage.journal.push_back(transfer_entry(live));
  }
  if (copy.in_journal || moved)
    stage.journal.push_back(source_entry(copy.zone, live.serial(), copy.source));
  return stage.draft.put_zone_source(copy.zone, copy.source);
}

}  // namespace pando::manager
