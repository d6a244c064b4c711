#include "manager/checkpoint/store_copy.h"

#include <sys/stat.h>

#include <asio/post.hpp>
#include <filesystem>

#include "manager/checkpoint/image.h"
#include "manager/journal/journal.h"
#include "zone/draft/draft.h"

namespace pando::manager {

namespace {

/// One form for all names of a file, whether the file exists or not.
std::filesystem::path plain(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::weakly_canonical(path, error);
  return error ? std::filesystem::path(path).lexically_normal() : full;
}

}  // namespace

Status check_not_own(const std::string& path, const std::string& journal,
                     const std::vector<std::string>& own) {
  const std::filesystem::path target = plain(path);
  if (target.parent_path() == plain(journal))
    return fail(Errc::kInvalid, "{}: in the folder of the journal", path);
  for (const std::string& file : own)
    if (!file.empty() && plain(file) == target)
      return fail(Errc::kInvalid, "{}: the server's own", path);
  return {};
}

Status check_same_folder(const Fd& descriptor, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  struct stat theirs{};
  struct stat ours{};
  if (::fstat(descriptor.get(), &theirs) != 0) return fail_errno("fstat");
  if (::stat(folder.c_str(), &ours) == 0 && ours.st_dev == theirs.st_dev &&
      ours.st_ino == theirs.st_ino)
    return {};
  return fail(
      Errc::kInvalid,
      "{}: the manager does not see this folder, or sees another one of that name (its unit "
      "has a /tmp of its own, and no /home): name a folder that both see",
      folder);
}

Status check_copy_target(Files& files, const std::string& path, const std::string& journal,
                         const std::vector<std::string>& own, bool (*may_replace)(ByteView)) {
  if (auto other = check_not_own(path, journal, own); !other) return other;
  auto head = read_file(files, path, shm::kImageMagicBytes);
  if (!head) return head.error().code == Errc::kNotFound ? Status() : Status(pass(head));
  const bool image = may_replace == nullptr;
  if (!(image ? shm::looks_like_image_index(*head) : may_replace(*head)))
    return fail(Errc::kDenied, "{}: there is something else than {}", path,
                image ? "an image" : "a dump");
  return {};
}

void copy_store(shm::Store& store, shm::SlotTable& slots, const Journal& journal,
                asio::io_context& io, asio::thread_pool& pool, Files& files, CopyRequest request,
                std::function<void(const Status&)> done) {
  if (auto durable = check_end(journal); !durable) return done(durable);
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(slots.pin_own(store.current().number));
  auto capture = std::make_shared<shm::ImageCapture>(store.capture());
  asio::post(pool, [=, &io, &files, window = store.window(), request = std::move(request),
                    done = std::move(done)]() mutable {
    Image image(files, {request.path, zone::layout_fingerprint(), {}});
    WriteRateLimiter pace(request.bytes_per_second);
    const std::atomic<bool>& ended = *request.ended;
    auto written = image.write(*capture, window, [&](std::uint64_t bytes) {
      pace.keep(bytes, [&] { return ended.load(); });
      return !ended;
    });
    Status status = status_of(written);
    if (!written && ended) status = fail(Errc::kDenied, "{}: the manager is ending", request.path);
    asio::post(io, [pin = std::move(pin), status, done = std::move(done)] { done(status); });
  });
}

}  // namespace pando::manager
