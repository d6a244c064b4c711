#include "manager/tls/tls_certificates.h"

#include <asio/post.hpp>
#include <utility>

#include "ipc/log.h"
#include "manager/tls/tls_demands.h"

namespace pando::manager {

struct TlsCertificates::Look {
  WantedMaterial wanted;
  TlsMaterial material;
  std::vector<Done> rolls;  ///< not empty: the next own key is to be used
  bool changed = false;
  Status rolled;

  void run(Files& files, std::uint64_t now) {
    changed = material.refresh(wanted, files, now);
    if (rolls.empty()) return;
    rolled = material.roll(wanted, files, now);
    changed = rolled.has_value() || changed;
  }
};

TlsCertificates::TlsCertificates(asio::io_context& io, asio::thread_pool& pool, Files& files,
                                 Options options)
    : io_(io), pool_(pool), files_(files), options_(std::move(options)), timer_(io) {}

TlsCertificates::~TlsCertificates() { stop(); }

void TlsCertificates::stop() {
  *alive_ = false;
  timer_.cancel();
}

void TlsCertificates::configure(SettingsPtr settings) {
  settings_ = std::move(settings);
  wanted_ = WantedMaterial::of(*settings_);
  is_configured_ = true;
  look();
}

void TlsCertificates::look() {
  if (!*alive_) return;
  looks_again_ = is_looking_;
  if (is_looking_) return;
  timer_.cancel();
  begin(std::make_shared<Look>(Look{wanted_, material_, {}, false, {}}));
}

void TlsCertificates::roll(Done done) {
  if (!wanted_.serves) return done(fail(Errc::kInvalid, "server.listen-tls names no address"));
  if (wanted_.pair)
    return done(fail(Errc::kInvalid,
                     "the certificate is that of {}: replace the files, which needs no command",
                     wanted_.pair->certificate));
  rolls_.push_back(std::move(done));
  if (is_looking_) return;
  timer_.cancel();
  begin(std::make_shared<Look>(
      Look{wanted_, material_, std::exchange(rolls_, {}), false, {}}));
}

void TlsCertificates::begin(std::shared_ptr<Look> look) {
  is_looking_ = true;
  look->changed = false;
  const bool is_first = std::exchange(is_configured_, false);
  asio::post(pool_, [this, &io = io_, &files = files_, alive = alive_, look = std::move(look),
                     is_first, now = options_.now()]() mutable {
    look->run(files, now);
    look->changed = look->changed || is_first;  // demands may be others
    asio::post(io, [this, alive = std::move(alive), look = std::move(look)] {
      if (*alive) finish(look);
    });
  });
}

void TlsCertificates::finish(const std::shared_ptr<Look>& look) {
  is_looking_ = false;
  material_ = std::move(look->material);
  sound_alarms();
  if (look->changed) changed_();
  for (const Done& done : look->rolls) done(look->rolled);
  if (!rolls_.empty())
    begin(std::make_shared<Look>(Look{wanted_, material_, std::exchange(rolls_, {}), false, {}}));
  else if (std::exchange(looks_again_, false))
    this->look();
  else
    look_later();
}

/// Nothing is watched without TLS.
void TlsCertificates::look_later() {
  if (!wanted_.serves && wanted_.remotes.empty()) return;
  timer_.expires_after(options_.pause);
  timer_.async_wait([this, alive = alive_](const asio::error_code& error) {
    if (!error && *alive) look();
  });
}

void TlsCertificates::sound_alarms() {
  std::erase_if(alarms_, [this](const auto& entry) {
    return !entry.first.empty() && !material_.of_remotes.contains(entry.first);
  });
  if (material_.server) sound_alarm("", *material_.server);
  for (const auto& [remote, pair] : material_.of_remotes) sound_alarm(remote, pair);
}

void TlsCertificates::sound_alarm(const std::string& name, const WatchedPair& pair) {
  if (!pair.in_use) return;
  const CertificateFacts& facts = pair.in_use->facts;
  const auto days = alarms_[name].look(facts.not_after, options_.now());
  if (!days) return;
  log::warning("tls_certificate_ends", "file", pair.paths.certificate, "subject", facts.subject,
               "until", time_text(facts.not_after), "days", *days);
}

std::shared_ptr<const Fd> TlsCertificates::server_pair() const {
  return material_.server && material_.server->in_use ? material_.server->in_use->pem : nullptr;
}

std::shared_ptr<const Fd> TlsCertificates::pair_for(const std::string& remote) const {
  const auto own = material_.of_remotes.find(remote);
  if (own == material_.of_remotes.end()) return server_pair();
  return own->second.in_use ? own->second.in_use->pem : nullptr;
}

std::vector<ipc::TlsDemand> TlsCertificates::demands() const {
  return settings_ ? demands_of(*settings_, material_) : std::vector<ipc::TlsDemand>();
}

namespace {

ipc::TlsCertificateRow row_of(const WatchedPair& pair) {
  ipc::TlsCertificateRow row;
  row.file = pair.paths.certificate;
  row.problem = pair.problem;
  if (!pair.in_use) return row;
  row.subject = pair.in_use->facts.subject;
  row.until = pair.in_use->facts.not_after;
  row.pin = pin_text(pair.in_use->facts.pin);
  return row;
}

}  // namespace

ipc::TlsStatusResult TlsCertificates::status() const {
  ipc::TlsStatusResult result;
  result.served = wanted_.serves;
  if (material_.server) result.certificate = row_of(*material_.server);
  if (!material_.next_pin.empty()) result.next_pin = pin_text(material_.next_pin);
  for (const config::Remote& remote : wanted_.remotes) {
    ipc::TlsRemoteRow row;
    row.remote = remote.name;
    row.authenticated = remote.tls->authenticates();
    row.hostname = remote.tls->hostname;
    for (const Bytes& pin : remote.tls->pins) row.pins.push_back(pin_text(pin));
    const auto authorities = material_.authorities.find(remote.tls->ca);
    if (!row.hostname.empty() && authorities != material_.authorities.end())
      row.problem = authorities->second.problem;
    const auto own = material_.of_remotes.find(remote.name);
    if (own != material_.of_remotes.end()) row.certificate = row_of(own->second);
    result.remotes.push_back(std::move(row));
  }
  return result;
}

}  // namespace pando::manager
