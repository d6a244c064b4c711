#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace pando::ctl {

/// A file that the manager writes by a descriptor of this process. The file belongs to this
/// process's user, and lies where this process sees `path`: the manager may see another /tmp. Until
/// place() it has another name, so the path has the old file or the whole new one.
class HandedFile {
 public:
  struct Wanted {
    std::string path;  ///< absolute
    mode_t mode = 0600;
    /// Whether the file at the path may be replaced, by its first bytes.
    std::function<bool(ByteView head)> may_replace;
    std::string what;          ///< of a file that may be replaced, for messages: "a dump"
    bool keeps_owner = false;  ///< owner and mode of a replaced file are kept, as far as allowed
  };

  /// kDenied: something else is at the path, or another user than root or this process's own has
  /// made a link among its folders (base/files/guarded_path.h).
  static Result<HandedFile> open(const Wanted& wanted);
  HandedFile(HandedFile&&) noexcept = default;
  HandedFile& operator=(HandedFile&&) = delete;
  ~HandedFile();

  /// For the manager: of an empty file.
  [[nodiscard]] const std::shared_ptr<const Fd>& descriptor() const noexcept { return file_; }
  /// Bytes that the file has by now.
  [[nodiscard]] std::uint64_t size() const noexcept;
  /// Gives the file its name. After success file and name are durable.
  Status place();

 private:
  HandedFile(Fd folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {}
  Status check_replaced(const Wanted& wanted, bool& exists) const;
  Status make(const Wanted& wanted);

  Fd folder_;
  std::string name_;
  std::string temporary_;  // empty: none is there
  std::shared_ptr<const Fd> file_;
};

}  // namespace pando::ctl
