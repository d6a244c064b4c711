#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/content_hash.h"
#include "base/fd.h"
#include "base/result.h"
#include "dns/zonefile/zone_scanner_lexer.h"

namespace pando::dns {

/// A source of zone text.
class ZoneSource {
 public:
  ZoneSource() = default;
  ZoneSource(const ZoneSource&) = delete;
  ZoneSource& operator=(const ZoneSource&) = delete;
  virtual ~ZoneSource() = default;
  /// Size of the source, as far as known.
  [[nodiscard]] virtual std::size_t size_hint() const noexcept = 0;
  /// Reads up to `size` octets to `out`; fewer only at the end.
  virtual Result<std::size_t> read(char* out, std::size_t size) = 0;
};

class MemorySource final : public ZoneSource {
 public:
  explicit MemorySource(std::string_view text) noexcept : text_(text) {}
  [[nodiscard]] std::size_t size_hint() const noexcept override { return text_.size(); }
  Result<std::size_t> read(char* out, std::size_t size) override;

 private:
  std::string_view text_;
};

/// A regular file, read and not mapped. A file that an editor truncates while it is mapped would
/// end the process with SIGBUS. Reading through a small window costs no more.
class FileSource final : public ZoneSource {
 public:
  struct Identity {
    dev_t device;
    ino_t inode;
    bool operator==(const Identity&) const = default;
  };

  /// Never blocks: kInvalid for other kinds of file (directory, FIFO, device).
  Status open(const std::string& path);
  [[nodiscard]] std::size_t size_hint() const noexcept override {
    return static_cast<std::size_t>(opened_.st_size);
  }
  /// kInvalid at the end when the file was changed meanwhile: half of an old and half of a new
  /// version must not become a zone. Skips a byte order mark.
  Result<std::size_t> read(char* out, std::size_t size) override;
  [[nodiscard]] Identity identity() const noexcept { return {opened_.st_dev, opened_.st_ino}; }
  /// Hash of all octets once the end was read; 0 before.
  [[nodiscard]] std::uint64_t content_hash() const noexcept { return ended_ ? hash_.value() : 0; }
  /// State of the file at open().
  [[nodiscard]] const struct stat& status() const noexcept { return opened_; }

 private:
  Status check_unchanged() const;
  Result<bool> skip_byte_order_mark();

  Fd fd_;
  struct stat opened_{};
  ContentHash hash_;
  bool ended_ = false;
  std::uint64_t read_ = 0;  // octets so far
};

/// The stretch of a source in a lexer's view.
class TextWindow {
 public:
  /// Reserves `octets` and one more, so that a whole file is recognised as complete at once.
  explicit TextWindow(std::size_t octets) { reserve(octets + 1); }
  /// Gives `lexer` its uncut text and more of the source after it. A record that fills the window
  /// enlarges the window, up to a limit (kFull). Returns the number of new octets.
  Result<std::size_t> refill(RecordLexer& lexer, ZoneSource& source);

 private:
  void reserve(std::size_t octets);

  // Not zeroed: a server with a million small zones opens a million windows.
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
};

}  // namespace pando::dns
