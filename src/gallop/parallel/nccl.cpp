#include "gallop/parallel/nccl.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/library.h"
#include "gallop/base/text.h"

namespace gallop::parallel {

namespace {

// The first version in which non-blocking calls end as documented.
constexpr int kOldest = 21800;

std::string find_functions(Nccl& nccl) {
  FunctionFinder finder(nccl.library.get());
  finder.find(nccl.version, "ncclGetVersion");
  finder.find(nccl.error_text, "ncclGetErrorString");
  finder.find(nccl.last_error, "ncclGetLastError");
  finder.find(nccl.make_id, "ncclGetUniqueId");
  finder.find(nccl.init, "ncclCommInitRankConfig");
  finder.find(nccl.state, "ncclCommGetAsyncError");
  finder.find(nccl.abort, "ncclCommAbort");
  finder.find(nccl.all_reduce, "ncclAllReduce");
  finder.find(nccl.broadcast, "ncclBroadcast");
  finder.find(nccl.send, "ncclSend");
  finder.find(nccl.recv, "ncclRecv");
  finder.find(nccl.group_start, "ncclGroupStart");
  finder.find(nccl.group_end, "ncclGroupEnd");
  return finder.missing();
}

}  // namespace

std::shared_ptr<const Nccl> load_nccl(const std::string& name) {
  auto nccl = std::make_shared<Nccl>();
  std::string error;
  nccl->library = load_library(name, error);
  if (!nccl->library) {
    throw DeviceError(
        fmt::format("several processes on GPUs need NVIDIA's NCCL, which cannot be loaded: {}; "
                    "tools/fetch-libtorch --cuda gets it",
                    printable(error)));
  }
  const std::string lacks = find_functions(*nccl);
  int version = 0;
  if (lacks.empty() && (nccl->version(&version) != Nccl::kSuccess || version < kOldest)) {
    throw DeviceError(fmt::format("{} is NCCL {}.{}.{}, and Gallop needs 2.18", printable(name),
                                  version / 10000, version / 100 % 100, version % 100));
  }
  if (!lacks.empty()) {
    throw DeviceError(fmt::format("{} lacks {}: Gallop needs NCCL 2.18", printable(name), lacks));
  }
  return nccl;
}

}  // namespace gallop::parallel
