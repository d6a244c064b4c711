#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "shm/reader.h"
#include "worker/net/manager_link.h"
#include "worker/net/refusal_log.h"
#include "worker/respond/responder.h"
#include "worker/tap/exchange.h"

namespace pando::worker {

class Taps;

/// State shared by the UDP and TCP services: the store, the responder, the link to the manager.
class Core {
 public:
  explicit Core(ManagerLink& link);

  /// Attaches to the store, or to a new store that the manager has made. The generation changes
  /// then: transfers of the old store must be cancelled before.
  Status attach(shm::SlotLoan files, std::uint64_t layout, std::uint32_t slot, Fd image);
  [[nodiscard]] bool attached() const noexcept { return reader_ != nullptr; }
  /// True when this worker is attached to these files, by whatever descriptors.
  [[nodiscard]] bool is_attached_to(const shm::SlotLoan& files) const;

  void set_keys(std::shared_ptr<const KeySet> keys);

  /// Pins the current version and prepares the responder for one batch. Call after the receive.
  void begin();
  void end() noexcept;
  /// `responses` of the batch go out next; sent() counts the time since the batch was received.
  void answered(std::size_t responses) noexcept { unsent_ += responses; }
  /// To be called after the send. One reading of the clock for all responses of the batch.
  void sent() noexcept;

  [[nodiscard]] shm::Reader& reader() noexcept { return *reader_; }
  [[nodiscard]] std::shared_ptr<shm::Reader> shared_reader() const noexcept { return reader_; }
  [[nodiscard]] const shm::Reader::View& view() const noexcept { return view_; }
  [[nodiscard]] Responder& responder() noexcept { return *responder_; }
  [[nodiscard]] Counting& counting() noexcept { return *counting_; }
  [[nodiscard]] ManagerLink& link() noexcept { return link_; }
  /// Null while dnstap and the query log are off.
  [[nodiscard]] Taps* taps() const noexcept { return taps_; }
  void set_taps(Taps* taps) noexcept { taps_ = taps; }
  /// The exchange of the request that the responder has just handled, for taps(); none if the
  /// request is in no sample. `message` is without a load balancer's header. Before end().
  [[nodiscard]] std::optional<Exchange> tapped(ByteView message, const Client& client,
                                               const timespec& received) const;

  /// Answers one request by the responder, and logs it if it is refused.
  Outcome handle(ByteView message, const Client& client, std::span<std::uint8_t> space) {
    const Outcome outcome = responder_->handle(message, client, space);
    refusals_.tell(responder_->last());
    return outcome;
  }
  /// handle() for request `i` of the batch that the responder has read.
  Outcome answer(std::size_t i, std::span<std::uint8_t> space) {
    const Outcome outcome = responder_->answer(i, space);
    refusals_.tell(responder_->last());
    return outcome;
  }

  /// Adopts the current settings without beginning a batch.
  void look_at_settings();
  /// is_proxy: `address` may put a PROXY header before its requests. any_proxy: some address may.
  [[nodiscard]] bool any_proxy() const noexcept { return !responder_->settings().proxies.empty(); }
  [[nodiscard]] bool is_proxy(const IpAddress& address) const noexcept;
  struct StreamLimits {
    std::uint32_t clients = 1000;
    std::uint32_t idle_ms = 10000;
  };
  /// Limits of connections over TCP or TLS, by the settings of the last version seen.
  [[nodiscard]] StreamLimits stream_limits(ipc::Transport transport) const noexcept {
    return transport == ipc::Transport::kTls ? tls_limits_ : tcp_limits_;
  }
  /// Seconds since 1970 from the coarse clock: no system call, and an error of a few ms is harmless
  /// for expiry and TSIG.
  static std::uint64_t coarse_now() noexcept;

 private:
  struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const FileId&) const = default;
  };
  void pin();
  static FileId id_of(int fd);

  ManagerLink& link_;
  std::shared_ptr<shm::Reader> reader_;
  FileId store_id_;
  FileId slot_id_;
  std::shared_ptr<const KeySet> keys_;
  std::optional<Counting> counting_;
  std::unique_ptr<Responder> responder_;
  Taps* taps_ = nullptr;
  shm::Reader::View view_;
  std::uint64_t begun_ns_ = 0;  ///< receive of the first unsent response's batch
  std::size_t unsent_ = 0;      ///< responses between answered() and sent()
  StreamLimits tcp_limits_;
  StreamLimits tls_limits_;
  RefusalLog refusals_;
};

}  // namespace pando::worker
