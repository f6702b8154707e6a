#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  ~Context();
  void closeConnections();
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
