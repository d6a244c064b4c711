#include "manager/checkpoint/image.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/crash_point.h"
#include "base/random.h"
#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/io/throttled_file.h"

namespace pando::manager {

namespace {

/// Adjacent chunks go to the disk in writes of up to this many bytes.
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
/// After this many failed reads, a minute apart, an image counts as unreadable.
constexpr int kMaxProofs = 3;

/// Whether `bytes` may have come to `path`, as far as can be found out.
bool may_hold(Files& files, const std::string& path, const Bytes& bytes) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return file.error().code != Errc::kNotFound;
  Bytes found(bytes.size());
  auto got = (*file)->read_at(0, found);
  return !got || found == bytes;
}

}  // namespace

class Image::Source final : public shm::ImageSource {
 public:
  explicit Source(std::unique_ptr<StoreFile> file) : file_(std::move(file)) {}

  Status read(std::uint32_t chunk, std::span<std::uint8_t> into, std::uint32_t checksum) override {
    auto got = file_->read_at(shm::image_chunk_offset(chunk), into);
    if (!got) return pass(got);
    if (*got != into.size() || shm::chunk_checksum(into) != checksum)
      return fail(Errc::kCorrupt, "chunk {} of the image, at byte {} of its file, is damaged",
                  chunk, shm::image_chunk_offset(chunk));
    return {};
  }

 private:
  std::unique_ptr<StoreFile> file_;
};

/// The chunks of one checkpoint on their way to the file; neighbours become one write.
class Image::ChunkWriter {
 public:
  ChunkWriter(StoreFile& file, const shm::Window& window, const OnWritten& on_written)
      : file_(file), window_(window), on_written_(on_written) {}

  /// Writes the part of the chunk that the image lacks, and sets the chunk's checksum. `known`: the
  /// image's chunk. kCorrupt: the image's chunk is no beginning of this one.
  Status add(std::uint32_t number, shm::ImageChunk& chunk, const shm::ImageChunk& known,
             bool changed) {
    const std::uint32_t there = known.count == 0 ? 0 : known.used;
    if (!changed && there == chunk.used) {
      chunk.checksum = known.checksum;
      return {};
    }
    const ByteView content = shm::chunk_bytes(window_, number, 0, chunk.used);
    if (there > chunk.used ||
        (there > 0 && shm::chunk_checksum(content.first(there)) != known.checksum))
      return fail(Errc::kCorrupt, "chunk {} is not what the image has", number);
    chunk.checksum = shm::chunk_checksum(content);
    return there == chunk.used ? Status() : append(number, there, chunk.used);
  }

  Status sync() {
    if (auto written = flush(); !written) return written;
    unsynced_ = 0;
    auto synced = file_.sync();
    // kIo even where the disk is full, since the loss of a failed sync is unknown.
    return synced ? synced : Status(fail(Errc::kIo, "{}", synced.error().text));
  }

  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;

 private:
  Status append(std::uint32_t chunk, std::uint32_t from, std::uint32_t to) {
    const ByteView part = shm::chunk_bytes(window_, chunk, from, to);
    ++chunks;
    if (!pending_.empty() && pending_.data() + pending_.size() == part.data() &&
        pending_.size() + part.size() <= kWriteBytes) {
      pending_ = ByteView(pending_.data(), pending_.size() + part.size());
      return {};
    }
    if (auto written = flush(); !written) return written;
    pending_ = part;
    offset_ = shm::image_chunk_offset(chunk) + from;
    return {};
  }

  Status flush() {
    if (pending_.empty()) return {};
    const ByteView part = std::exchange(pending_, {});
    if (auto written = file_.write_at(offset_, part); !written) return written;
    bytes += part.size();
    crash_point("image-chunks-written");
    if (!on_written_(part.size())) return fail(Errc::kDenied, "the checkpoint was ended");
    unsynced_ += part.size();
    return unsynced_ < ThrottledFile::kUnsyncedBytes ? Status() : sync();
  }

  StoreFile& file_;
  const shm::Window& window_;
  const OnWritten& on_written_;
  ByteView pending_;
  std::uint64_t offset_ = 0;
  std::uint64_t unsynced_ = 0;
};

Image::Image(Files& files, Options options) : files_(files), options_(std::move(options)) {}

std::string Image::chunk_path(std::uint64_t file) const {
  return shm::image_chunks_path(options_.path, file);
}

std::string Image::directory() const {
  const std::filesystem::path path(options_.path);
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

Status Image::open() {
  auto read = read_index();
  if (!read && read.error().code != Errc::kNotFound) return read;
  // The process that renamed the index may have died before the rename was durable. A process that
  // died in its first checkpoint has left a file that no index will ever name.
  if (auto synced = files_.sync_directory(directory()); !synced)
    drop_file();
  else
    remove_others();
  return read;
}

Status Image::read_index() {
  auto bytes = read_file(files_, options_.path, shm::kMaxIndexBytes + 1);
  if (!bytes) return pass(bytes);
  if (bytes->size() > shm::kMaxIndexBytes)
    return fail(Errc::kCorrupt, "{}: too large for an image's index", options_.path);
  auto index = shm::decode_image_index(*bytes);
  if (!index) return fail(index.error().code, "{}: {}", options_.path, index.error().text);
  if (auto ours = check_head(*index); !ours) return ours;
  auto chunks = open_chunks(index->file, OpenMode::kWrite);
  if (!chunks && chunks.error().code == Errc::kNotFound)
    return fail(Errc::kCorrupt, "{}", chunks.error().text);
  if (!chunks) return pass(chunks);
  if (auto whole = check_length(**chunks, *index); !whole) return whole;
  file_ = std::move(*chunks);
  file_name_ = index->file;
  index_ = std::move(*index);
  own_index_ = named_ = true;
  untrusted_ = true;
  return {};
}

/// Whether the file is as long as the index requires.
Status Image::check_length(StoreFile& chunks, const ImageIndex& index) const {
  auto bytes = chunks.size();
  if (!bytes) return pass(bytes);
  if (*bytes >= shm::image_chunks_bytes(index.state)) return {};
  return fail(Errc::kCorrupt, "{} is damaged: cut off at byte {}", chunk_path(index.file), *bytes);
}

/// Whether this build may use the image beside this journal.
Status Image::check_head(const ImageIndex& index) const {
  if (index.layout != options_.layout)
    return fail(Errc::kLayout, "{}: made by a build with another layout", options_.path);
  if (index.owner == shm::StoreOwner{} && !options_.take_copies)
    return fail(Errc::kDenied, "{}: a copy, and the journal has records of its own", options_.path);
  if (index.owner != options_.owner && index.owner != shm::StoreOwner{})
    return fail(Errc::kDenied, "{}: belongs to another journal", options_.path);
  return {};
}

Result<ImageIndex> Image::read_head(const std::string& path) const {
  auto head = read_file(files_, path, shm::kImageHeadBytes);
  if (!head) return pass(head);
  auto index = shm::decode_image_head(*head);
  if (!index) return fail(index.error().code, "{}: {}", path, index.error().text);
  return index;
}

Status Image::look(std::uint64_t lineage) {
  auto index = read_head(options_.path);
  if (!index) return pass(index);
  if (auto ours = check_head(*index); !ours) return ours;
  if (index->state.lineage != lineage)
    return fail(Errc::kDenied, "{}: of another store than the live one", options_.path);
  index_ = std::move(*index);
  file_name_ = index_->file;
  own_index_ = named_ = true;
  looked_at_ = untrusted_ = true;
  return {};
}

/// The index must have the version that is pinned since look(), or its chunks may be gone.
Status Image::prove() {
  if (!looked_at_) return {};
  const std::uint64_t version = index_->state.version;
  const std::uint64_t lineage = index_->state.lineage;
  auto read = open();
  const bool may_pass =
      !read && (read.error().code == Errc::kIo || read.error().code == Errc::kFull);
  if (may_pass && ++proofs_failed_ < kMaxProofs) {
    log::warning("image_not_read", "path", options_.path, "reason", read.error().text);
    return read;
  }
  looked_at_ = false;
  if (read && (index_->state.version != version || index_->state.lineage != lineage))
    read = fail(Errc::kCorrupt, "{}: another index than at the start", options_.path);
  if (read) {
    index_->state.side = {};
    return {};
  }
  log::warning("image_not_used", "reason", read.error().text);
  forget();
  return read;
}

Result<std::unique_ptr<StoreFile>> Image::open_chunks(std::uint64_t file, OpenMode mode) {
  const std::string path = chunk_path(file);
  auto opened = files_.open(path, mode);
  if (!opened) return opened;
  Bytes block(shm::kImageChunksHeadBytes);
  auto got = (*opened)->read_at(0, block);
  if (!got) return pass(got);
  if (block != shm::encode_image_chunks_head(file))
    return fail(Errc::kCorrupt, "{}: not an image's chunks", path);
  return opened;
}

Result<std::unique_ptr<shm::ImageSource>> Image::source() {
  if (!index_) return fail(Errc::kNotFound, "{}: no such image", options_.path);
  auto file = open_chunks(index_->file, OpenMode::kRead);
  if (!file) return pass(file);
  return std::unique_ptr<shm::ImageSource>(std::make_unique<Source>(std::move(*file)));
}

std::string Image::chunks() const { return index_ ? chunk_path(index_->file) : std::string(); }

Status Image::take_over() {
  if (!index_ || index_->owner == options_.owner) return {};
  ImageIndex owned = *index_;
  owned.owner = options_.owner;
  const Bytes bytes = shm::encode_image_index(owned);
  if (auto put = write_file_atomically(files_, options_.path, bytes); !put) return put;
  index_ = std::move(owned);
  return {};
}

bool Image::may_be_good(Errc why) noexcept {
  return why != Errc::kCorrupt && why != Errc::kLayout && why != Errc::kNotFound;
}

/// Renames the index alone: an atomic step, undone by one command. The chunks are found by their
/// file's name, see remove_others().
Status Image::quarantine() {
  forget();
  const std::string to = quarantine_path();
  if (auto index = read_head(options_.path); !index) return pass(index);
  if (auto there = check_readable(to); there)
    return fail(Errc::kExists, "there is {} already", to);
  else if (there.error().code == Errc::kCorrupt)
    log::warning("quarantined_image_replaced", "path", to, "reason", there.error().text);
  else if (there.error().code != Errc::kNotFound)
    return there;
  if (auto renamed = files_.rename(options_.path, to); !renamed) return renamed;
  return files_.sync_directory(directory());
}

/// Whether this build or another one may use the image of that index. kCorrupt: none may;
/// kNotFound, or the error of a file that cannot be read now.
Status Image::check_readable(const std::string& path) {
  auto bytes = read_file(files_, path, shm::kMaxIndexBytes + 1);
  if (!bytes) return pass(bytes);
  const auto file = shm::image_file_of(*bytes);
  if (!file) return fail(Errc::kCorrupt, "not an image of a zone store");
  auto index = shm::decode_image_index(*bytes);
  if (!index && index.error().code == Errc::kCorrupt) return pass(index);
  auto chunks = open_chunks(*file, OpenMode::kRead);
  if (!chunks && chunks.error().code == Errc::kNotFound)
    return fail(Errc::kCorrupt, "{}", chunks.error().text);
  if (!chunks) return pass(chunks);
  return index ? check_length(**chunks, *index) : Status();
}

bool Image::has_quarantined() const {
  const auto head = read_file(files_, quarantine_path(), shm::kImageHeadBytes);
  return head && shm::image_file_of(*head);
}

Status Image::remove() {
  forget();
  if (auto removed = files_.remove(options_.path); !removed) return removed;
  return files_.sync_directory(directory());
}

void Image::forget() {
  index_.reset();
  drop_file();
}

/// The file stays on the disk as long as an index may name it.
void Image::drop_file() {
  file_.reset();
  looked_at_ = false;
  own_index_ = false;
  named_ = false;
  untrusted_ = true;
}

Status Image::begin_anew() {
  drop_file();
  file_name_ = random_number<std::uint64_t>();
  auto made = files_.open(chunk_path(file_name_), OpenMode::kCreate);
  if (!made) return pass(made);
  file_ = std::move(*made);
  return file_->write_at(0, shm::encode_image_chunks_head(file_name_));
}

Result<Image::Written> Image::write(const shm::ImageCapture& capture, const shm::Window& window,
                                    const OnWritten& on_written, std::uint64_t configuration) {
  // Without an index the write begins anew.
  if (auto proven = prove(); !proven && looked_at_) return pass(proven);
  auto written = write_once(capture, window, on_written, configuration);
  // The index was made from another store.
  if (!written && written.error().code == Errc::kCorrupt && own_index_) {
    drop_file();
    written = write_once(capture, window, on_written, configuration);
  }
  if (written) return written;
  untrusted_ = true;
  const Errc why = written.error().code;
  if (!own_index_) {
    const std::string path = chunk_path(file_name_);
    if (!std::exchange(named_, false)) (void)files_.remove(path);
    drop_file();
  } else if (why != Errc::kFull && why != Errc::kDenied) {
    drop_file();
  }
  return written;
}

Result<Image::Written> Image::write_once(const shm::ImageCapture& capture,
                                         const shm::Window& window, const OnWritten& on_written,
                                         std::uint64_t configuration) {
  Written written;
  written.anew = file_ == nullptr;
  if (written.anew)
    if (auto begun = begin_anew(); !begun) return pass(begun);
  ImageIndex next{options_.layout, options_.owner, file_name_,
                  unix_seconds(),  configuration,  capture.state};
  ChunkWriter writer(*file_, window, on_written);
  for (std::uint32_t number = 0; number < next.state.chunks.size(); ++number) {
    shm::ImageChunk& chunk = next.state.chunks[number];
    if (chunk.count == 0) continue;
    const bool changed = untrusted_ || number >= capture.written.size() || capture.written[number];
    if (auto added = writer.add(number, chunk, known_chunk(number), changed); !added)
      return pass(added);
  }
  if (auto synced = writer.sync(); !synced) return pass(synced);
  // The file's name is durable before an index names the file.
  if (written.anew)
    if (auto synced = files_.sync_directory(directory()); !synced) return pass(synced);
  crash_point("image-chunks-synced");
  next.state.side = shm::side_table(window);
  written.chunks = writer.chunks;
  written.bytes = writer.bytes;
  if (auto put = put_index(std::move(next), written); !put) return pass(put);
  return written;
}

/// The chunk that the file has, as far as a checkpoint may build on it; else an unused one.
shm::ImageChunk Image::known_chunk(std::uint32_t number) const {
  return own_index_ && number < index_->state.chunks.size() ? index_->state.chunks[number]
                                                            : shm::ImageChunk();
}

Status Image::put_index(ImageIndex&& index, Written& written) {
  const Bytes bytes = shm::encode_image_index(index);
  auto put = write_file_atomically(files_, options_.path, bytes);
  // A renamed index may not be durable yet. In that case both indexes must keep their chunks.
  named_ = named_ || put || may_hold(files_, options_.path, bytes);
  if (!put) return fail(Errc::kIo, "{}", put.error().text);
  crash_point("image-index-written");
  written.bytes += bytes.size();
  index_ = std::move(index);
  index_->state.side = {};
  own_index_ = true;
  untrusted_ = false;
  if (written.anew) remove_others();
  written.quarantined = has_quarantined();
  return {};
}

/// Removes chunks that no index names any more. A quarantined image keeps its chunks.
void Image::remove_others() {
  std::string quarantined;
  if (auto head = read_file(files_, quarantine_path(), shm::kImageHeadBytes); head) {
    if (const auto file = shm::image_file_of(*head)) quarantined = chunk_path(*file);
  } else if (head.error().code != Errc::kNotFound) {
    return;  // the quarantined image's chunks are unknown
  }
  const std::filesystem::path path(options_.path);
  const std::string prefix = path.filename().string() + ".";
  const auto names = files_.list(directory());
  if (!names) return;
  constexpr std::size_t kDigits = 16;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix) || name.size() != prefix.size() + kDigits ||
        name.find_first_not_of("0123456789abcdef", prefix.size()) != std::string::npos)
      continue;
    const std::string other = (path.parent_path() / name).string();
    if (other == quarantined || (file_ != nullptr && other == chunk_path(file_name_))) continue;
    (void)files_.remove(other);
  }
}

}  // namespace pando::manager
