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

/// The store's image on disk: the file of chunks, which grows and changes in place, and an *index*
/// that says what of it counts, replaced by rename. Chunks that the index refers to are never
/// written again where it refers to them, so that it holds whatever a later checkpoint has left
/// behind. That needs the store's help: the version of the index stays pinned (index()).
///
/// When in doubt (a failed sync, chunks that are not what they were) a checkpoint begins a new file
/// and leaves the old one, with its index, as it is until the new one is durable.
///
/// Not thread-safe: one thread at a time.
class Image {
 public:
  struct Options {
    std::string path;  ///< of the index; the chunks are beside it, in `path`.DIGITS
    std::uint64_t layout = 0;
    shm::StoreOwner owner{};
    bool take_copies =
        false;  ///< of no journal (manager/checkpoint/store_copy.h): ours has nothing yet
  };

  Image(Files& files, Options options);

  /// Reads the index. kNotFound: there is none; kLayout: another build's; kDenied: of another
  /// journal; kCorrupt: damaged; kIo, kFull: it could not be read. In all these cases the next
  /// write() makes a new image in its place; see set_aside().
  Status open();
  /// For a live store of that line (Store::line()), which needs no more than
  /// index()->state.version: reads the index's head alone, and leaves the rest to prove(), or the
  /// first write(), which are no part of a start. Errors as those of open(); kDenied, too: it is of
  /// another line, so it may have what the live store has not.
  Status look(std::uint64_t line);
  /// True after look(): whether there is an image behind the index's head is not known.
  [[nodiscard]] bool unproven() const noexcept { return looked_at_; }
  /// Reads what look() has left out; nothing otherwise. An error, as those of open(), is in the log
  /// too. One that says nothing against the image (kIo, kFull) leaves it unproven(), a few times;
  /// after any other there is no index(), and the next write() makes a new image.
  Status prove();
  /// What the disk has; nullptr before open(), look() or write() succeeded. After look() it has no
  /// chunks.
  [[nodiscard]] const ImageIndex* index() const noexcept { return index_ ? &*index_ : nullptr; }
  /// The chunks of index(), each checked as it is read. kNotFound, kIo, kCorrupt.
  Result<std::unique_ptr<shm::ImageSource>> source();
  [[nodiscard]] const std::string& path() const noexcept { return options_.path; }
  /// What the index on the disk has before its chunks, whoever may use it. kNotFound, kIo,
  /// kCorrupt: it is none.
  [[nodiscard]] Result<ImageIndex> head() const { return read_head(options_.path); }
  /// index() is of our journal, at its very beginning: no update is in it.
  [[nodiscard]] bool is_of_no_update() const noexcept {
    return index_ && index_->owner == options_.owner && index_->state.journal_position == 0;
  }
  /// Path of their file; empty: there is no index().
  [[nodiscard]] std::string chunks() const;

  struct Written {
    std::uint64_t chunks = 0;  ///< written, whole or a part
    std::uint64_t bytes = 0;   ///< of chunks and index
    bool anew = false;         ///< to a new file
    bool refused = false;      ///< there is an image that was set aside
  };
  /// Makes a copy of no journal that of ours, durably.
  Status take_over();
  /// Called with bytes just written; false ends the checkpoint.
  using TokenBucket = std::function<bool(std::uint64_t bytes)>;
  /// A checkpoint: brings what changed to the disk and the index up to it. The captured version is
  /// pinned by the caller, and so is that of index() until this has succeeded. kFull and other
  /// errors leave the image that was there, also one that cannot be proven now. `configuration`: of
  /// that version, for the index.
  Result<Written> write(const shm::ImageCapture& capture, const shm::Window& window,
                        const TokenBucket& pace, std::uint64_t configuration = 0);
  /// Whether an image that was refused for this reason may be a good one: no room for it, an error
  /// of the disk, one that belongs to somebody else.
  [[nodiscard]] static bool may_be_good(Errc why) noexcept;
  /// Gives the image that is there another name (refused_path()), its chunks stay beside it under
  /// theirs, as long as it is there. So the next write() destroys nothing. kExists: there is
  /// another one of that name, which takes its place only if no build can read it any more. After
  /// an error the image must not be written.
  Status set_aside();
  /// Removes the index, durably: there is no image then.
  Status remove();
  [[nodiscard]] std::string refused_path() const { return options_.path + ".refused"; }
  /// Of whatever version; false as well when it cannot be read.
  [[nodiscard]] bool has_refused() const;
  /// What index() says cannot be trusted to be what the store has: the next write() begins anew.
  void forget();
  /// The next write() goes to a file of its own; what the disk has stays.
  void leave() { drop_file(); }
  /// Somebody else has captured: what was written since the last checkpoint is not known.
  void doubt() noexcept { unsure_ = true; }
  /// The next write() goes to the file of index(), whose version has to stay pinned.
  [[nodiscard]] bool in_place() const noexcept { return own_index_; }

 private:
  class Source;
  class Round;
  Status read_index();
  [[nodiscard]] Status check_head(const ImageIndex& index) const;
  [[nodiscard]] Status check_length(StoreFile& chunks, const ImageIndex& index) const;
  [[nodiscard]] Status check_readable(const std::string& path);
  [[nodiscard]] Result<Bytes> read_bytes(const std::string& path, std::uint64_t most) const;
  [[nodiscard]] std::string chunk_path(std::uint64_t file) const;
  [[nodiscard]] std::string directory() const;
  Result<std::unique_ptr<StoreFile>> open_chunks(std::uint64_t file, OpenMode mode);
  Status begin_anew();
  Result<Written> write_once(const shm::ImageCapture& capture, const shm::Window& window,
                             const TokenBucket& pace, std::uint64_t configuration);
  Status put_index(ImageIndex&& index, Written& written);
  [[nodiscard]] Result<ImageIndex> read_head(const std::string& path) const;
  void remove_others();
  void drop_file();

  Files& files_;
  Options options_;
  std::optional<ImageIndex> index_;
  std::unique_ptr<StoreFile> file_;  // null: the next checkpoint begins anew
  std::uint64_t file_name_ = 0;
  bool own_index_ = false;  // index_ speaks of file_
  bool named_ = false;      // an index on the disk may speak of file_
  bool unsure_ = true;      // which chunks changed is not known
  bool looked_at_ = false;  // only the head of the index was read
  int proofs_failed_ = 0;   // for reasons that may pass
};

}  // namespace pando::manager
