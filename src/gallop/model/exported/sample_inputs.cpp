#include "gallop/model/exported/sample_inputs.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import_read.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::model::exported {

namespace {

/// The bytes of an archive in memory.
class Bytes final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t position, void* to, size_t count, const char* /*what*/) const override {
    if (position >= bytes_.size()) return 0;
    const size_t read = std::min<size_t>(count, bytes_.size() - position);
    std::memcpy(to, bytes_.data() + position, read);
    return read;
  }

 private:
  std::string_view bytes_;
};

// The leaves of tuples, lists and dicts, in order.
void flatten(const c10::IValue& value, std::vector<c10::IValue>& leaves) {
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) flatten(item, leaves);
  } else if (value.isList() && !value.isTensorList()) {
    for (const c10::IValue& item : value.toListRef()) flatten(item, leaves);
  } else if (value.isTensorList()) {
    for (const at::Tensor& item : value.toTensorVector()) leaves.emplace_back(item);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) flatten(item.value(), leaves);
  } else {
    leaves.push_back(value);
  }
}

}  // namespace

std::vector<c10::IValue> sample_inputs(Archive& archive) {
  const std::string_view bytes = archive.sample_inputs(archive.training_program());
  std::vector<c10::IValue> leaves;
  if (bytes.empty()) return leaves;
  try {
    caffe2::serialize::PyTorchStreamReader reader(std::make_unique<Bytes>(bytes));
    // Tensors of a GPU are read into main memory, where the program runs.
    flatten(torch::jit::readArchiveAndTensors("data", "", "", std::nullopt, std::nullopt, c10::kCPU,
                                              reader),
            leaves);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    throw DataError(fmt::format("{}: the sample inputs cannot be read: {}",
                                printable(archive.path().string()),
                                printable(what.substr(0, what.find('\n')))));
  }
  return leaves;
}

}  // namespace gallop::model::exported
