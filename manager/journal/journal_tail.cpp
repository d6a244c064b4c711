#include "manager/journal/journal_tail.h"

#include <utility>

#include "manager/journal/record/journal_format.h"

namespace pando::manager {

void JournalTail::found(std::string file, Bytes bytes) {
  tail_ = Tail{std::move(file), std::move(bytes)};
  secured_ = false;
}

Status JournalTail::secure() {
  if (!tail_) return {};
  if (auto done = rewrite(*tail_); !done)
    return fail(done.error().code, "journal file {}: could not be made durable again: {}",
                tail_->file, done.error().text);
  forget();
  return {};
}

void JournalTail::forget() noexcept {
  tail_.reset();
  secured_ = true;
}

/// Copies the tail to a file of fresh blocks, which takes over the name. The space is reserved
/// first: a full disk fails before anything is written.
Status JournalTail::rewrite(const Tail& from) const {
  const std::string partial = from.file + std::string(kPartialSuffix);
  auto opened = disk_.open(partial, OpenMode::kCreate);
  Status made = opened ? (*opened)->preallocate(from.bytes.size()) : pass(opened);
  if (made) made = (*opened)->write_at(0, from.bytes);
  if (made) made = (*opened)->sync();
  if (made) made = disk_.rename(partial, from.file);
  if (made) made = disk_.sync_directory(directory_);
  if (!made) static_cast<void>(disk_.remove(partial));  // freed blocks may let the next try succeed
  return made;
}

}  // namespace pando::manager
