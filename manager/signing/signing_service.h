#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "manager/change/change_road.h"
#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/io/store_file.h"
#include "manager/net/network.h"
#include "manager/signing/key_rolls.h"
#include "manager/signing/ds_check.h"
#include "manager/signing/renewal.h"
#include "manager/signing/signed_zones.h"
#include "manager/signing/signing_watch.h"
#include "manager/change/update_holds.h"
#include "manager/signing/whole_signing.h"
#include "shm/slots.h"

namespace pando::manager {

/// All that signs zones here: their keys and stages (SignedZones), the signing of whole zones, the
/// renewal of signatures, what is learned from looks at them, and key rolls. The road signs changes with the
/// signers of zones(). Lives on the commit thread.
class SigningService {
 public:
  struct Parts {
    asio::io_context& io;
    asio::thread_pool& background;  ///< reads folders of keys, and walks over zones
    Network& network;               ///< asks resolvers; its builders sign whole zones
    Files& files;
    shm::Store& store;
    shm::SlotTable& slots;
    const Committer& committer;
    ChangeRoad& road;
  };
  struct Hooks {
    UpdateHolds holds;
    /// The zone is signed otherwise than before: a file that was refused for that may be read again.
    std::function<void(const dns::Name& zone)> signed_anew;
  };

  /// References outlive the object; both pools are joined before its destruction.
  SigningService(Parts parts, SigningClock::Sources clocks, Hooks hooks);
  SigningService(const SigningService&) = delete;
  SigningService& operator=(const SigningService&) = delete;

  /// See SignedZones::configure().
  void configure(const RuntimePtr& runtime, const std::vector<dns::Name>* only = nullptr) {
    parent_.configure(runtime);
    zones_.configure(runtime, only);
    watch_.forget_gone();
  }
  /// Begins what is due; to be called each second or so.
  void check(std::chrono::steady_clock::time_point now);
  /// A version of the zone was published.
  void published(const dns::Name& zone, bool is_whole);
  void stop() noexcept {
    zones_.stop();
    parent_.stop();
  }
  /// The operator says that the host's clock is right.
  void confirm_clock() { zones_.confirm_clock(); }

  /// Why the zone is not signed as it is to be, in one line; empty: it is, or is not signed here.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  /// Zones whose signatures were not renewed in time.
  [[nodiscard]] std::uint64_t zones_late() const noexcept { return watch_.zones_late(); }
  /// Names whose signatures were renewed since the start.
  [[nodiscard]] std::uint64_t renewed() const noexcept { return renewal_.renewed(); }
  [[nodiscard]] KeyRolls& rolls() noexcept { return rolls_; }
  [[nodiscard]] SignedZones& zones() noexcept { return zones_; }
  [[nodiscard]] const SignedZones& zones() const noexcept { return zones_; }

 private:
  void ready(const dns::Name& zone);
  void whole_is_done(const dns::Name& zone);

  Hooks hooks_;
  SignedZones zones_;
  SigningWatch watch_;
  KeyRolls rolls_;
  DsCheck parent_;
  WholeSigning whole_;
  SignatureRenewal renewal_;
};

}  // namespace pando::manager
