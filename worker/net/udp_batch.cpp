#include "worker/net/udp_batch.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/result.h"
#include "worker/net/message_length.h"

namespace pando::worker {

namespace {

/// Reserves memory without huge pages: unwritten pages take no physical memory, and a huge page
/// would make many real together.
std::uint8_t* map_memory(std::size_t octets) {
  void* memory = ::mmap(nullptr, octets, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PANDO_ASSERT(memory != MAP_FAILED);
  ::madvise(memory, octets, MADV_NOHUGEPAGE);
  return static_cast<std::uint8_t*>(memory);
}

constexpr std::size_t kLine = 64;  // of the processor's caches
constexpr std::size_t kReceiveOctets = 65536;
/// From one message to the next, and from one response to the next.
constexpr std::size_t kReceiveStride = kReceiveOctets + UdpBatch::kPage;
constexpr std::size_t kSendStride = UdpBatch::kSendOctets + 5 * kLine;

constexpr std::size_t kStarts = 16;
constexpr std::size_t kStartStep = 2 * kLine;
static_assert((kStarts - 1) * kStartStep + UdpBatch::kLongestKept <= UdpBatch::kPage);
/// The place of message `i` in its page.
constexpr std::size_t start_of(std::size_t i) noexcept { return i % kStarts * kStartStep; }

constexpr std::size_t kRecordOctets = UdpBatch::kKeptOctets - UdpBatch::kMessages * UdpBatch::kPage;

/// Maps a page of the file over private memory.
bool map_over(std::uint8_t* at, std::size_t octets, int file, off_t offset) {
  return ::mmap(at, octets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset) !=
             MAP_FAILED &&
         // Clients' questions are not for core dumps.
         ::madvise(at, octets, MADV_DONTDUMP) == 0;
}

bool is_internet(const sockaddr_storage& address) {
  return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

}  // namespace

UdpBatch::UdpBatch()
    : receive_memory_(map_memory(kMessages * kReceiveStride)),
      send_memory_(map_memory(kMessages * kSendStride)),
      record_(reinterpret_cast<Record*>(map_memory(kRecordOctets))) {
  for (std::size_t i = 0; i < kMessages; ++i) {
    in_parts_[i] = {page_of(i) + start_of(i), kReceiveOctets};
    out_[i].msg_hdr.msg_iov = &out_parts_[i];
    out_[i].msg_hdr.msg_iovlen = 1;
    point(i);
  }
}

UdpBatch::~UdpBatch() {
  ::munmap(receive_memory_, kMessages * kReceiveStride);
  ::munmap(send_memory_, kMessages * kSendStride);
  ::munmap(record_, kRecordOctets);
}

std::uint8_t* UdpBatch::page_of(std::size_t i) const noexcept {
  return receive_memory_ + i * kReceiveStride;
}

/// Makes a header ready for recvmmsg.
void UdpBatch::point(std::size_t i) noexcept {
  msghdr& header = in_[i].msg_hdr;
  header.msg_name = &record_->senders[i];
  header.msg_namelen = sizeof(sockaddr_storage);
  header.msg_iov = &in_parts_[i];
  header.msg_iovlen = 1;
  header.msg_control = record_->controls[i].octets.data();
  header.msg_controllen = sizeof(SourceControl);
  header.msg_flags = 0;
}

Status UdpBatch::keep_in(int file, off_t offset, std::size_t octets) {
  if (octets < kKeptOctets) return fail(Errc::kInvalid, "room for {} octets only", octets);
  if (!map_over(reinterpret_cast<std::uint8_t*>(record_), kRecordOctets, file, offset))
    return fail_errno("mmap of the batch's record");
  const bool left = record_->magic == kMagic && record_->held.load(std::memory_order_relaxed) == 1;
  record_->magic = 0;  // nothing can be inherited until all of the memory is the file's
  for (std::size_t i = 0; i < kMessages; ++i) {
    const off_t page = offset + static_cast<off_t>(kRecordOctets + i * kPage);
    // Each message begins in the file and continues in private memory.
    if (!map_over(page_of(i), kPage, file, page)) return fail_errno("mmap of the batch's messages");
  }
  inherited_ = left;
  counted_ = kMessages;  // of the previous worker
  if (inherited_ && record_->counted.load(std::memory_order_relaxed) != 1) measure();
  record_->magic = kMagic;
  if (!inherited_) {
    for (sockaddr_storage& sender : record_->senders) sender.ss_family = 0;
    done();
  }
  return {};
}

bool UdpBatch::inherited(const Endpoint& local) const noexcept {
  return inherited_ && record_->local == local;
}

bool UdpBatch::inherit(std::size_t i) noexcept {
  queued_ = octets_queued_ = 0;
  if (!inherited_ || i >= kMessages) return false;
  lengths_[i] = std::exchange(record_->lengths[i], 0);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  msghdr& header = in_[i].msg_hdr;
  const sockaddr_storage& sender = record_->senders[i];
  header.msg_namelen = sender.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  header.msg_controllen = record_->wildcard ? sizeof(SourceControl) : 0;
  return lengths_[i] > 0 && lengths_[i] <= kLongestKept && is_internet(sender);
}

std::size_t UdpBatch::receive(const Source& source) noexcept {
  queued_ = octets_queued_ = 0;
  inherited_ = false;
  for (std::size_t i = 0; i < counted_; ++i) point(i);  // the kernel has changed them
  record_->local = source.local;
  record_->wildcard = source.wildcard;
  record_->counted.store(0, std::memory_order_relaxed);
  record_->held.store(1, std::memory_order_release);
  const int received = ::recvmmsg(source.socket, in_.data(), kMessages, MSG_DONTWAIT, nullptr);
  if (received <= 0) {
    done();
    return 0;
  }
  count(static_cast<std::size_t>(received));
  return static_cast<std::size_t>(received);
}

void UdpBatch::count(std::size_t received) noexcept {
  for (std::size_t i = 0; i < received; ++i) record_->lengths[i] = lengths_[i] = in_[i].msg_len;
  for (std::size_t i = received; i < counted_; ++i) record_->lengths[i] = 0;
  counted_ = received;
  record_->counted.store(1, std::memory_order_release);
}

/// The previous process was killed before it had the lengths. They are those of whole messages:
/// others would be answered by FORMERR, and their clients ask again.
void UdpBatch::measure() noexcept {
  for (std::size_t i = 0; i < kMessages; ++i) {
    const ByteView kept(page_of(i) + start_of(i), kLongestKept);
    const bool is_there = is_internet(record_->senders[i]);
    record_->lengths[i] = is_there ? static_cast<std::uint32_t>(message_length(kept)) : 0;
  }
  record_->counted.store(1, std::memory_order_release);
}

void UdpBatch::done() noexcept {
  inherited_ = false;
  for (std::size_t i = 0; i < counted_; ++i) record_->senders[i].ss_family = 0;
  record_->held.store(0, std::memory_order_release);
}

ByteView UdpBatch::message(std::size_t i) const noexcept {
  return {page_of(i) + start_of(i), lengths_[i]};
}

std::optional<IpAddress> UdpBatch::destination(std::size_t i) const noexcept {
  return find_destination(in_[i].msg_hdr);
}

std::span<std::uint8_t> UdpBatch::space(std::size_t i) noexcept {
  return {send_memory_ + i * kSendStride, kSendOctets};
}

void UdpBatch::respond(std::size_t i, std::size_t size) noexcept {
  out_parts_[queued_] = {send_memory_ + i * kSendStride, size};
  answers_[queued_] = static_cast<std::uint8_t>(i);
  ++queued_;
  octets_queued_ += size;
}

std::size_t UdpBatch::send(int socket, bool wildcard) noexcept {
  for (std::size_t i = 0; i < queued_; ++i) {
    msghdr& header = out_[i].msg_hdr;
    const msghdr& request = in_[answers_[i]].msg_hdr;
    header.msg_name = request.msg_name;
    header.msg_namelen = request.msg_namelen;
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    if (!wildcard) continue;
    if (const auto source = find_destination(request)) set_source(header, out_control_[i], *source);
  }
  std::size_t failed = 0;
  for (std::size_t sent = 0; sent < queued_;) {
    const int count =
        ::sendmmsg(socket, out_.data() + sent, static_cast<unsigned>(queued_ - sent), MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      return failed + queued_ - sent;  // the socket's buffer is full: UDP may lose them
    } else {
      ++sent;  // this response cannot be sent (say, no route); others may
      ++failed;
    }
  }
  return failed;
}

}  // namespace pando::worker
