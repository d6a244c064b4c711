#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "manager/io/store_file.h"
#include "shm/image_format.h"
#include "shm/image_state.h"

namespace pando::manager {

using shm::ImageIndex;

/// The store's image on disk: a file of chunks, which grows and changes in place, and an *index* of
/// the valid chunks, replaced by rename. Bytes that the index refers to are never written again, so
/// the index stays valid however a later checkpoint ends. For that purpose the
/// version of the index stays pinned in the store (index()).
///
/// In doubt (a failed sync, chunks that changed unexpectedly) a checkpoint begins a new file. The
/// old file and its index stay as they are until the new file is durable.
///
/// Not thread-safe: one thread at a time.
class Image {
 public:
  struct Options {
    std::string path;  ///< of the index; the chunks are beside it, in `path`.DIGITS
    std::uint64_t layout = 0;
    shm::StoreOwner owner{};
    /// Accept a copy of no journal (manager/checkpoint/store_copy.h), since our journal is empty.
    bool take_copies = false;
  };

  Image(Files& files, Options options);

  /// Reads the index. kNotFound: there is none; kLayout: another build's; kDenied: of another
  /// journal; kCorrupt: damaged; kIo, kFull: unreadable. After any error the next write() makes a
  /// new image in its place; see quarantine().
  Status open();
  /// For a live store of this lineage (Store::lineage()), which needs only the version to pin:
  /// reads the index's head alone. The rest is read by prove(), or to the first write(), so that a
  /// start does not wait for it. Errors as those of open(). kDenied also for another lineage, whose
  /// image may have data that the live store lacks.
  Status look(std::uint64_t lineage);
  /// True after look(): the image after the index's head was not read.
  [[nodiscard]] bool unproven() const noexcept { return looked_at_; }
  /// Reads the part that look() left out; no effect otherwise. Errors, as those of open(), are
  /// logged, too. An error that may pass (kIo, kFull) leaves the image unproven(), a few times.
  /// After any other error there is no index(), and the next write() makes a new image.
  Status prove();
  /// The index on the disk; nullptr before open(), look() or write() succeeded. Without chunks
  /// after look().
  [[nodiscard]] const ImageIndex* index() const noexcept { return index_ ? &*index_ : nullptr; }
  /// The chunks of index(), each checked as it is read. kNotFound, kIo, kCorrupt.
  Result<std::unique_ptr<shm::ImageSource>> source();
  [[nodiscard]] const std::string& path() const noexcept { return options_.path; }
  /// The head of the index on the disk, whoever may use the image. kNotFound, kIo; kCorrupt: not an
  /// index.
  [[nodiscard]] Result<ImageIndex> head() const { return read_head(options_.path); }
  /// Whether index() is of our journal at its very beginning, before any update.
  [[nodiscard]] bool is_of_no_update() const noexcept {
    return index_ && index_->owner == options_.owner && index_->state.journal_position == 0;
  }
  /// Path of the file of chunks; empty without index().
  [[nodiscard]] std::string chunks() const;

  struct Written {
    std::uint64_t chunks = 0;  ///< written, wholly or partly
    std::uint64_t bytes = 0;   ///< of chunks and index
    bool anew = false;         ///< to a new file
    bool quarantined = false;  ///< there is a quarantined image
  };
  /// Makes an image of no journal one of ours, durably.
  Status take_over();
  /// Called with the number of bytes just written; may wait. False ends the checkpoint.
  using OnWritten = std::function<bool(std::uint64_t bytes)>;
  /// A checkpoint: writes the changed chunks, then the index. The caller pins the captured version,
  /// and until success the version of index(). kFull and other errors leave the old image, also one
  /// that cannot be proven now. `configuration`: that of the captured version, for the index.
  Result<Written> write(const shm::ImageCapture& capture, const shm::Window& window,
                        const OnWritten& on_written, std::uint64_t configuration = 0);
  /// Whether an image that was not used for this reason may be good: no memory for it, an error of
  /// the disk, another owner.
  [[nodiscard]] static bool may_be_good(Errc why) noexcept;
  /// Renames the index to quarantine_path(). The chunks keep their names as long as that index
  /// exists, so the next write() destroys nothing. kExists: there is another quarantined image;
  /// only one that no build can read is replaced. After an error the image must not be written.
  Status quarantine();
  /// Removes the index, durably; then there is no image.
  Status remove();
  [[nodiscard]] std::string quarantine_path() const { return options_.path + ".quarantined"; }
  /// Whether there is a quarantined image, of whatever version; false also when it cannot be read.
  [[nodiscard]] bool has_quarantined() const;
  /// Drops index(), which cannot be trusted to match the store: the next write() begins anew.
  void forget();
  /// The next write() goes to a file of its own; the image on the disk stays.
  void leave() { drop_file(); }
  /// The changes since the last checkpoint are unknown, since a copy captured the store.
  void mark_untrusted() noexcept { untrusted_ = true; }
  /// Whether the next write() goes to the file of index(), whose version has to stay pinned.
  [[nodiscard]] bool in_place() const noexcept { return own_index_; }

 private:
  class Source;
  class ChunkWriter;
  Status read_index();
  [[nodiscard]] Status check_head(const ImageIndex& index) const;
  [[nodiscard]] Status check_length(StoreFile& chunks, const ImageIndex& index) const;
  [[nodiscard]] Status check_readable(const std::string& path);
  [[nodiscard]] std::string chunk_path(std::uint64_t file) const;
  [[nodiscard]] std::string directory() const;
  Result<std::unique_ptr<StoreFile>> open_chunks(std::uint64_t file, OpenMode mode);
  Status begin_anew();
  Result<Written> write_once(const shm::ImageCapture& capture, const shm::Window& window,
                             const OnWritten& on_written, std::uint64_t configuration);
  [[nodiscard]] shm::ImageChunk known_chunk(std::uint32_t number) const;
  Status put_index(ImageIndex&& index, Written& written);
  [[nodiscard]] Result<ImageIndex> read_head(const std::string& path) const;
  void remove_others();
  void drop_file();

  Files& files_;
  Options options_;
  std::optional<ImageIndex> index_;
  std::unique_ptr<StoreFile> file_;  // null: the next checkpoint begins anew
  std::uint64_t file_name_ = 0;
  bool own_index_ = false;  // index_ refers to file_
  bool named_ = false;      // an index on the disk may refer to file_
  bool untrusted_ = true;   // the changed chunks are unknown
  bool looked_at_ = false;  // only the head of the index was read
  int proofs_failed_ = 0;   // failures of prove() that may pass
};

}  // namespace pando::manager
