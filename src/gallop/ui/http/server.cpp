#include "gallop/ui/http/server.h"

#include <microhttpd.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "gallop/base/blocked_signals.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/thread_pool.h"
#include "gallop/ui/http/target.h"

namespace gallop::ui::http {

namespace {

// A connection.
struct Client {
  int socket = -1;
  double waits_since = 0;  ///< Start of waiting for a complete request; 0: not waiting.
  std::shared_ptr<EventStream> events{};  ///< The stream that it reads.
};

// A request of a connection and its response.
struct Exchange {
  enum class State { kNew, kReceiving, kAnswering, kAnswered };
  State state = State::kNew;
  std::string target;
  Request request;
  bool is_refused = false;
  Response response;
};

// The source of a streaming response.
struct StreamReader {
  std::shared_ptr<EventStream> events;
};

MHD_Result add_header(void* headers, MHD_ValueKind /*kind*/, const char* name, const char* value) {
  static_cast<Headers*>(headers)->emplace_back(lower_case(name), value != nullptr ? value : "");
  return MHD_YES;
}

// Disables decoding by the library: only parse_target() decodes, so that both cannot differ.
size_t leave_as_it_is(void* /*unused*/, MHD_Connection* /*connection*/, char* text) {
  return std::string_view(text).size();
}

// Before version 1, libmicrohttpd truncates the target at a zero byte. The version string stays
// where it was parsed, one byte after the target.
bool is_whole(const std::string& target, const char* url, const char* version) {
  return MHD_VERSION >= 0x01000000 || version == url + target.size() + 1;
}

Client* client_of(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info != nullptr ? static_cast<Client*>(info->socket_context) : nullptr;
}

bool is_gone(int socket) {
  char byte = 0;
  return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

ssize_t read_events(void* reader, uint64_t /*position*/, char* out, size_t most) {
  const std::ptrdiff_t count = static_cast<StreamReader*>(reader)->events->take(out, most);
  return count < 0 ? MHD_CONTENT_READER_END_OF_STREAM : static_cast<ssize_t>(count);
}

void free_reader(void* reader) {
  const std::unique_ptr<StreamReader> owned(static_cast<StreamReader*>(reader));
  owned->events->abandon();
}

using OwnedResponse = std::unique_ptr<MHD_Response, void (*)(MHD_Response*)>;

OwnedResponse make_response(Response& response, MHD_Connection* connection) {
  OwnedResponse made(nullptr, MHD_destroy_response);
  if (response.events) {
    response.events->serve({.sleep = [connection] { MHD_suspend_connection(connection); },
                            .wake = [connection] { MHD_resume_connection(connection); }});
    constexpr size_t kBlock = 4096;
    made.reset(MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, read_events,
                                                 new StreamReader{response.events}, free_reader));
  } else {
    // The body lives as long as the exchange, which ends after it was sent.
    made.reset(MHD_create_response_from_buffer(response.body.size(), response.body.data(),
                                               MHD_RESPMEM_PERSISTENT));
  }
  if (!made) return made;
  MHD_add_response_header(made.get(), MHD_HTTP_HEADER_CONTENT_TYPE, response.type.c_str());
  for (const auto& [name, value] : response.headers) {
    MHD_add_response_header(made.get(), name.c_str(), value.c_str());
  }
  return made;
}

}  // namespace

class Server::Connections {
 public:
  Connections(FileDescriptor socket, Handlers handlers, const ServerLimits& limits);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

 private:
  static void* begin_exchange(void* self, const char* target, MHD_Connection* connection);
  static MHD_Result go_on(void* self, MHD_Connection* connection, const char* url,
                          const char* method, const char* version, const char* data, size_t* size,
                          void** context);
  static void end_exchange(void* self, MHD_Connection* connection, void** context,
                           MHD_RequestTerminationCode how);
  static void note_connection(void* self, MHD_Connection* connection, void** context,
                              MHD_ConnectionNotificationCode what);

  void admit(Exchange& exchange, MHD_Connection* connection, const char* method, bool is_whole);
  void receive(Exchange& exchange, std::string_view data);
  MHD_Result answer(Exchange& exchange, MHD_Connection* connection);
  MHD_Result send(Exchange& exchange, MHD_Connection* connection);
  void watch();
  void look_after(const Client& client);

  const Handlers handlers_;
  const ServerLimits limits_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_closing_ = false;
  std::set<Client*> clients_;
  std::unique_ptr<ThreadPool> answering_;
  MHD_Daemon* daemon_ = nullptr;
  std::thread watching_;
};

Server::Connections::Connections(FileDescriptor socket, Handlers handlers,
                                 const ServerLimits& limits)
    : handlers_(std::move(handlers)), limits_(limits) {
  const auto blocked = BlockedSignals::all();  // In all threads started here.
  answering_ = std::make_unique<ThreadPool>(limits_.threads, "gallop-ui");
  // Half of it is the read buffer, which is counted here, so that this server responds to overflow.
  const size_t memory = 4 * limits_.header_bytes;
  daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, go_on, this,
      MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_LISTEN_SOCKET, socket.get(),
      MHD_OPTION_CONNECTION_LIMIT, limits_.connections, MHD_OPTION_CONNECTION_TIMEOUT,
      limits_.seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_URI_LOG_CALLBACK,
      begin_exchange, this, MHD_OPTION_UNESCAPE_CALLBACK, leave_as_it_is, nullptr,
      MHD_OPTION_NOTIFY_COMPLETED, end_exchange, this, MHD_OPTION_NOTIFY_CONNECTION,
      note_connection, this, MHD_OPTION_END);
  if (daemon_ == nullptr) {
    throw DeviceError("the server cannot start: libmicrohttpd failed to start");
  }
  socket.release();  // Now owned by the daemon.
  watching_ = std::thread([this] { watch(); });
}

Server::Connections::~Connections() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  wake_.notify_all();
  watching_.join();
  answering_.reset();
  // The daemon must not have suspended connections when it stops.
  {
    const std::lock_guard lock(mutex_);
    for (Client* client : clients_) {
      if (client->events) client->events->close();
    }
  }
  MHD_stop_daemon(daemon_);
}

void* Server::Connections::begin_exchange(void* /*self*/, const char* target,
                                          MHD_Connection* /*connection*/) {
  auto exchange = std::make_unique<Exchange>();
  exchange->target = target;
  return exchange.release();
}

MHD_Result Server::Connections::go_on(void* self, MHD_Connection* connection, const char* url,
                                      const char* method, const char* version, const char* data,
                                      size_t* size, void** context) {
  auto& server = *static_cast<Connections*>(self);
  auto& exchange = *static_cast<Exchange*>(*context);
  switch (exchange.state) {
    case Exchange::State::kNew:
      server.admit(exchange, connection, method, is_whole(exchange.target, url, version));
      return MHD_YES;
    case Exchange::State::kReceiving:
      if (*size == 0) return server.answer(exchange, connection);
      server.receive(exchange, {data, *size});
      *size = 0;
      return MHD_YES;
    case Exchange::State::kAnswering: return MHD_YES;
    case Exchange::State::kAnswered: return server.send(exchange, connection);
  }
  return MHD_NO;
}

void Server::Connections::end_exchange(void* self, MHD_Connection* connection, void** context,
                                       MHD_RequestTerminationCode /*how*/) {
  auto& server = *static_cast<Connections*>(self);
  delete static_cast<Exchange*>(*context);
  *context = nullptr;
  const std::lock_guard lock(server.mutex_);
  if (Client* client = client_of(connection)) {
    client->events.reset();
    client->waits_since = monotonic_seconds();
  }
}

void Server::Connections::note_connection(void* self, MHD_Connection* connection, void** context,
                                          MHD_ConnectionNotificationCode what) {
  auto& server = *static_cast<Connections*>(self);
  const std::lock_guard lock(server.mutex_);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    auto client = std::make_unique<Client>();
    client->socket = info != nullptr ? info->connect_fd : -1;
    client->waits_since = monotonic_seconds();
    server.clients_.insert(client.get());
    *context = client.release();
  } else {
    auto* client = static_cast<Client*>(*context);
    server.clients_.erase(client);
    delete client;
    *context = nullptr;
  }
}

void Server::Connections::admit(Exchange& exchange, MHD_Connection* connection, const char* method,
                                bool is_whole) {
  Request& request = exchange.request;
  request.method = method;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, add_header, &request.headers);
  size_t bytes = request.method.size() + exchange.target.size();
  for (const auto& [name, value] : request.headers) bytes += name.size() + value.size() + 4;
  if (bytes > limits_.header_bytes) {
    request.fault = Fault{431, "the request's headers are too long"};
  } else if (!is_whole) {
    request.fault = Fault{400, "the request's first line has a control character"};
  } else {
    try {
      Target target = parse_target(exchange.target);
      request.path = std::move(target.path);
      request.query = std::move(target.query);
    } catch (const UsageError& error) {
      request.fault = Fault{400, error.what()};
    }
  }
  exchange.state = Exchange::State::kReceiving;
  if (auto refused = handlers_.refuse(request)) {
    exchange.is_refused = true;
    exchange.response = std::move(*refused);
  }
}

// A rejected body is read nevertheless, as clients may not read a response before they have sent
// it.
void Server::Connections::receive(Exchange& exchange, std::string_view data) {
  if (exchange.is_refused) return;
  exchange.request.body += data;
  if (exchange.request.body.size() <= limits_.body_bytes) return;
  exchange.request.body.clear();
  exchange.request.fault = Fault{413, "the request's body is too long"};
  exchange.is_refused = true;
  exchange.response = handlers_.refuse(exchange.request).value_or(Response{.status = 413});
}

MHD_Result Server::Connections::answer(Exchange& exchange, MHD_Connection* connection) {
  std::unique_lock lock(mutex_);
  if (Client* client = client_of(connection)) client->waits_since = 0;
  if (is_closing_) return MHD_NO;
  if (exchange.is_refused) {
    lock.unlock();
    return send(exchange, connection);
  }
  exchange.state = Exchange::State::kAnswering;
  MHD_suspend_connection(connection);
  answering_->submit([this, &exchange, connection] {
    exchange.response = handlers_.answer(exchange.request);
    exchange.state = Exchange::State::kAnswered;
    MHD_resume_connection(connection);
  });
  return MHD_YES;
}

MHD_Result Server::Connections::send(Exchange& exchange, MHD_Connection* connection) {
  if (exchange.response.events) {
    const std::lock_guard lock(mutex_);
    if (is_closing_) return MHD_NO;
    if (Client* client = client_of(connection)) client->events = exchange.response.events;
  }
  const OwnedResponse made = make_response(exchange.response, connection);
  if (!made) return MHD_NO;
  return MHD_queue_response(connection, static_cast<unsigned>(exchange.response.status),
                            made.get());
}

// The library's timeout is between two bytes, so that a client could take hours for a request.
void Server::Connections::watch() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return is_closing_; })) {
    for (const Client* client : clients_) look_after(*client);
  }
}

void Server::Connections::look_after(const Client& client) {
  // Suspended connections do not notice that the client is gone.
  if (client.events && is_gone(client.socket)) client.events->close();
  if (client.waits_since > 0 && monotonic_seconds() - client.waits_since > limits_.seconds) {
    shutdown(client.socket, SHUT_RDWR);
  }
}

Server::Server(FileDescriptor socket, Handlers handlers, const ServerLimits& limits)
    : connections_(std::make_unique<Connections>(std::move(socket), std::move(handlers), limits)) {}

Server::~Server() = default;

}  // namespace gallop::ui::http
