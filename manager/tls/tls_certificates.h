#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "config/settings/settings.h"
#include "ipc/control_results.h"
#include "ipc/tls_messages.h"
#include "manager/io/store_file.h"
#include "manager/tls/expiry_alarm.h"
#include "manager/tls/tls_material.h"

namespace pando::manager {

/// Certificates and keys for pando-tls. Their files are read at the start, and again when the
/// configuration or a file changes. What cannot be used leaves what was in use. Alarms tell when a
/// certificate comes near its end.
///
/// All methods on the commit thread; files are read in a thread of the pool.
class TlsCertificates {
 public:
  struct Options {
    std::function<std::uint64_t()> now;      ///< seconds since 1970: certificates have such times
    std::chrono::milliseconds pause{5'000};  ///< between two looks at the files
  };
  using SettingsPtr = std::shared_ptr<const config::Settings>;
  using Done = std::function<void(Status)>;

  /// References outlive the object, and the threads of the pool.
  TlsCertificates(asio::io_context& io, asio::thread_pool& pool, Files& files, Options options);
  ~TlsCertificates();
  TlsCertificates(const TlsCertificates&) = delete;
  TlsCertificates& operator=(const TlsCertificates&) = delete;

  /// `changed` is called after each look that found something else for pando-tls, the first one
  /// after configure() included.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }
  /// Takes other settings, and reads their files soon.
  void configure(SettingsPtr settings);
  /// Looks at the files now. The timer does so as well, from configure() on.
  void look();
  /// Puts the next own key into use. kInvalid: the certificate is a file's, or TLS is not served.
  void roll(Done done);
  void stop();

  /// The server's key and certificates, sealed; null: none can be used, or TLS is not served.
  [[nodiscard]] std::shared_ptr<const Fd> server_pair() const;
  /// The certificate for a remote, sealed: its own, or the server's; null: none.
  [[nodiscard]] std::shared_ptr<const Fd> pair_for(const std::string& remote) const;
  /// Of the remotes that rules name.
  [[nodiscard]] std::vector<ipc::TlsDemand> demands() const;
  [[nodiscard]] ipc::TlsStatusResult status() const;

 private:
  /// The work of one thread of the pool, and its result.
  struct Look;

  void begin(std::shared_ptr<Look> look);
  void finish(const std::shared_ptr<Look>& look);
  void look_later();
  void sound_alarms();
  void sound_alarm(const std::string& name, const WatchedPair& pair);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Files& files_;
  Options options_;
  std::function<void()> changed_ = [] {};
  SettingsPtr settings_;
  WantedMaterial wanted_;
  TlsMaterial material_;
  std::map<std::string, ExpiryAlarm> alarms_;  ///< by remote; that of the server is ""
  asio::steady_timer timer_;
  std::vector<Done> rolls_;  ///< wait for the look that is under way
  bool is_configured_ = false;  ///< since the last look began
  bool is_looking_ = false;
  bool looks_again_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
