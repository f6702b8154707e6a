#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace gallop::parallel {

/// The unique id by which the processes of a communicator find each other: ncclUniqueId.
struct NcclId {
  char bytes[128] = {};
};

/// ncclConfig_t as of 2.14; the library reads as much of it as `size` says.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  ///< Calls return immediately; the communicator's state reports their result.
};

/// The functions of NVIDIA's NCCL (docs.nvidia.com/deeplearning/nccl/user-guide) that
/// NcclCollectives needs, with the values of its enumerations for results, data types and
/// operations. Communicators and CUDA streams are pointers.
struct Nccl {
  enum Result { kSuccess = 0, kInProgress = 7 };
  enum Format { kUint8 = 1, kInt64 = 4, kFp16 = 6, kFp32 = 7, kFp64 = 8, kBf16 = 9 };
  enum Operation { kSum = 0 };

  std::shared_ptr<void> library;
  int (*version)(int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  const char* (*last_error)(void*) = nullptr;
  int (*make_id)(NcclId*) = nullptr;
  int (*init)(void**, int size, NcclId, int rank, NcclConfig*) = nullptr;
  int (*state)(void*, int*) = nullptr;
  int (*abort)(void*) = nullptr;
  int (*all_reduce)(const void*, void*, size_t, int format, int operation, void*,
                    void* stream) = nullptr;
  int (*broadcast)(const void*, void*, size_t, int format, int root, void*, void* stream) = nullptr;
  int (*send)(const void*, size_t, int format, int to, void*, void* stream) = nullptr;
  int (*recv)(void*, size_t, int format, int from, void*, void* stream) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
};

/// Loads NCCL, which LibTorch's CUDA library must have loaded before. Throws DeviceError if it is
/// not available or is older than 2.18.
std::shared_ptr<const Nccl> load_nccl(const std::string& name = "libnccl.so.2");

}  // namespace gallop::parallel
