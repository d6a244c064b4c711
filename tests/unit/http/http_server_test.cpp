#include "http/serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

#include "base/fd.h"

namespace pando::http {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// A server on a port of loopback, and clients that write octets.
class Http : public ::testing::Test {
 protected:
  void serve(const ServerLimits& limits, Handler handler = nullptr) {
    if (!handler)
      handler = [](const Request& request) {
        return text_response(200, request.method + " " + request.path + " [" + request.query +
                                      "] " + request.body);
      };
    auto opened = HttpServer::open({any_port()}, {}, limits, handler);
    ASSERT_TRUE(opened) << opened.error().text;
    server_ = std::move(*opened);
    at_ = server_->addresses().at(0);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Http() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  static Endpoint any_port() { return {IpAddress::from_text("127.0.0.1").value(), 0}; }

  [[nodiscard]] Fd connect() const {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage address{};
    const socklen_t length = at_.to_sockaddr(address);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    const timeval limit{20, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
  }
  static bool send(const Fd& fd, std::string_view text) {
    return ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  /// All octets until the server closes, or until `enough` have come.
  static std::string receive(const Fd& fd, std::size_t enough = SIZE_MAX) {
    std::string text;
    char part[4096];
    while (text.size() < enough) {
      const ssize_t got = ::recv(fd.get(), part, sizeof part, 0);
      if (got <= 0) break;
      text.append(part, static_cast<std::size_t>(got));
    }
    return text;
  }
  [[nodiscard]] std::string ask(std::string_view text) const {
    const Fd fd = connect();
    send(fd, text);
    return receive(fd);
  }

  std::unique_ptr<HttpServer> server_;
  Endpoint at_;
  std::thread thread_;
};

TEST_F(Http, HandsThePartsOfARequestOver) {
  serve({});
  const std::string answer =
      ask("POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
          "Content-Length: 4\r\n\r\nbody");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nPOST /a/b [c=d] body\n"));
}

TEST_F(Http, KeepsAConnectionForMoreRequests) {
  serve({});
  const Fd fd = connect();
  send(fd, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  send(fd, "HEAD /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answers = receive(fd);
  EXPECT_THAT(answers, HasSubstr("GET /1 [] \n"));
  EXPECT_THAT(answers, HasSubstr("GET /2 [] \n"));
  EXPECT_THAT(answers, EndsWith("\r\n\r\n")) << "HEAD: the fields of GET, and no content";
  EXPECT_THAT(answers, HasSubstr("Content-Length: 11\r\n"));
}

TEST_F(Http, RefusesMalformedAndLargeRequests) {
  ServerLimits limits;
  limits.header_bytes = 1024;
  limits.body_bytes = 100;
  serve(limits);
  const std::pair<std::string, const char*> cases[] = {
      {"nonsense\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/9.9\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /a b HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
      {std::string("\0\xFF\x16\x03\x01", 5) + "\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /" + std::string(2000, 'a') + " HTTP/1.1\r\n\r\n", "HTTP/1.1 431 "},
      {"GET / HTTP/1.1\r\nA: " + std::string(2000, 'a') + "\r\n\r\n", "HTTP/1.1 431 "},
      {"POST / HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n", "HTTP/1.1 413 "},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", "HTTP/1.1 4"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFF\r\n" + std::string(255, 'a') +
           "\r\n0\r\n\r\n",
       "HTTP/1.1 413 "},
  };
  for (const auto& [text, expected] : cases) {
    const Fd fd = connect();
    send(fd, text);
    ::shutdown(fd.get(), SHUT_WR);
    EXPECT_THAT(receive(fd), StartsWith(expected)) << text.substr(0, 80);
  }
  EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), HasSubstr(" 200 OK"));
}

/// A client that sends an octet now and then is no more patient than one that sends nothing.
TEST_F(Http, EndsSlowClientsInABoundedTime) {
  ServerLimits limits;
  limits.request_time = milliseconds(300);
  serve(limits);
  const auto begun = std::chrono::steady_clock::now();
  const Fd silent = connect();
  const Fd slow = connect();
  bool open = true;
  while (open && std::chrono::steady_clock::now() - begun < std::chrono::seconds(20)) {
    open = send(slow, "G");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_FALSE(open);
  EXPECT_EQ(receive(silent), "");
}

TEST_F(Http, EndsClientsThatDoNotComeBack) {
  ServerLimits limits;
  limits.idle_time = milliseconds(100);
  serve(limits);
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("GET / [] \n"));
}

TEST_F(Http, ANewClientTakesThePlaceOfTheOneThatWaitedLongest) {
  ServerLimits limits;
  limits.connections = 4;
  serve(limits);
  std::vector<Fd> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connect());
  EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), HasSubstr(" 200 OK"));
  EXPECT_EQ(receive(idle.front()), "") << "closed long before its time";
}

TEST_F(Http, RefusesMoreThanItsRate) {
  ServerLimits limits;
  limits.requests_per_second = 1;
  limits.burst = 2;
  serve(limits);
  std::string answers;
  for (int i = 0; i < 10; ++i) answers += ask("GET / HTTP/1.0\r\n\r\n").substr(9, 4);
  EXPECT_THAT(answers, StartsWith("200 200 429 "));
}

/// A handler that hangs holds its threads, and the other requests are refused at once.
TEST_F(Http, RefusesWhatFindsNoThread) {
  ServerLimits limits;
  limits.threads = 1;
  limits.waiting = 2;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  serve(limits, [released](const Request&) {
    released.wait();
    return text_response(200, "late");
  });
  std::vector<Fd> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(connect());
    send(waiting.back(), "GET / HTTP/1.0\r\n\r\n");
    // The next one is sent when this one is in work: the server reads connections in order.
    const Fd next = connect();
  }
  std::string answer;
  for (int i = 0; i < 100 && answer.empty(); ++i) answer = ask("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr(" 503 "));
  release.set_value();
  for (const Fd& fd : waiting) EXPECT_THAT(receive(fd), EndsWith("late\n"));
}

TEST_F(Http, SaysWhyItCannotListen) {
  serve({});
  const auto second = HttpServer::open({at_}, {}, {}, nullptr);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().text, HasSubstr("in use"));
  const auto no_files = HttpServer::open({}, TlsFiles{"/nowhere.pem", "/nowhere.key"}, {}, nullptr);
  ASSERT_FALSE(no_files);
  EXPECT_THAT(no_files.error().text, StartsWith("/nowhere.pem: "));
}

}  // namespace
}  // namespace pando::http
