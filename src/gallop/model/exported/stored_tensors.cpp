#include "gallop/model/exported/stored_tensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/base/checked.h"
#include "gallop/base/text.h"
#include "gallop/model/exported/schema_reader.h"

namespace gallop::model::exported {

namespace {

// What tensors may need beyond their storages, as they may overlap within them.
constexpr int64_t kMaxExtraBytes = int64_t{1} << 30;

// The constant sizes and strides of a tensor.
struct Extents {
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  std::vector<int64_t> sizes{}, strides{};
  int64_t offset = 0;  ///< In elements.
  auto operator<=>(const Extents&) const = default;
};

int64_t constant_of(const Size& size, const Place& place) {
  if (!size.is_constant() || !size.hint) {
    place.fail(fmt::format("has the symbolic size '{}'", size.expression));
  }
  if (*size.hint < 0) place.fail(fmt::format("has the negative size or stride {}", *size.hint));
  return *size.hint;
}

Extents extents_of(const TensorMeta& meta, const Place& place) {
  Extents extents{.dtype = meta.dtype, .offset = constant_of(meta.storage_offset, place)};
  for (const Size& size : meta.sizes) extents.sizes.push_back(constant_of(size, place));
  for (const Size& stride : meta.strides) extents.strides.push_back(constant_of(stride, place));
  return extents;
}

// The bytes of a contiguous tensor of these sizes. Dimensions of 0 do not hide an overflow of the
// others, as strides are products as well.
int64_t bytes_of(const Extents& extents, const Place& place) {
  std::vector<int64_t> at_least_1 = extents.sizes;
  for (int64_t& size : at_least_1) size = std::max<int64_t>(size, 1);
  const auto element = static_cast<int64_t>(c10::elementSize(extents.dtype));
  const auto largest = checked_product(at_least_1);
  if (!largest || !checked_multiply(*largest, element)) {
    place.fail(fmt::format("has the absurd sizes [{}]", fmt::join(extents.sizes, ", ")));
  }
  return *checked_product(extents.sizes) * element;
}

// The bytes from the storage's first to the tensor's last element; empty on overflow.
std::optional<int64_t> end_of(const Extents& extents) {
  std::optional<int64_t> last = extents.offset;
  for (size_t i = 0; i < extents.sizes.size(); ++i) {
    const auto step = checked_multiply(extents.sizes[i] - 1, extents.strides[i]);
    if (!step || !last) return std::nullopt;
    last = checked_add(*last, *step);
  }
  const auto elements = last ? checked_add(*last, int64_t{1}) : std::nullopt;
  if (!elements) return std::nullopt;
  return checked_multiply(*elements, static_cast<int64_t>(c10::elementSize(extents.dtype)));
}

// Whether each element from the first to the last is in the tensor once.
bool is_dense(const Extents& extents) {
  std::vector<size_t> order(extents.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return extents.strides[a] < extents.strides[b]; });
  int64_t expected = 1;
  for (const size_t i : order) {
    if (extents.sizes[i] == 1) continue;
    if (extents.strides[i] != expected) return false;
    expected *= extents.sizes[i];
  }
  return true;
}

// An uninitialized tensor with the strides of the file if they are dense.
at::Tensor empty_of(const Extents& extents) {
  const auto options = at::TensorOptions(extents.dtype);
  return is_dense(extents) ? at::empty_strided(extents.sizes, extents.strides, options)
                           : at::empty(extents.sizes, options);
}

// Copies a tensor out of its storage.
at::Tensor copy_of(const Extents& extents, std::string_view storage, const Place& place) {
  const auto end = end_of(extents);
  if (!end || std::cmp_greater(*end, storage.size())) {
    // torch 2.9 and 2.10 store such weights so: parts of a larger tensor on a GPU, of which they
    // copy the part alone, but keep the place in the whole.
    place.fail(
        fmt::format("goes beyond the {} bytes of its storage; if the model was on a GPU, export it "
                    "on a CPU, or with torch 2.11 or newer",
                    storage.size()));
  }
  const auto options = at::TensorOptions(extents.dtype);
  const size_t element = c10::elementSize(extents.dtype);
  const char* data = storage.data() + static_cast<size_t>(extents.offset) * element;
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % element == 0;
  at::Tensor aligned;
  if (!is_aligned) {
    const size_t bytes = static_cast<size_t>(*end) - static_cast<size_t>(extents.offset) * element;
    aligned = at::empty({static_cast<int64_t>(bytes)}, at::TensorOptions(c10::kByte));
    std::memcpy(aligned.mutable_data_ptr(), data, bytes);
    data = static_cast<const char*>(aligned.const_data_ptr());
  }
  const at::Tensor target = empty_of(extents);
  if (extents.dtype == c10::ScalarType::Bool) {
    // Bytes other than 0 and 1 are not valid bools.
    const at::Tensor bytes = at::from_blob(const_cast<char*>(data), extents.sizes, extents.strides,
                                           at::TensorOptions(c10::kByte));
    return target.copy_(bytes.ne(0));
  }
  return target.copy_(
      at::from_blob(const_cast<char*>(data), extents.sizes, extents.strides, options));
}

const at::Tensor& given_tensor(const StoredTensor& stored, const Extents& extents,
                               const std::unordered_map<std::string, at::Tensor>& given,
                               std::string_view kind, const Place& place) {
  const auto found = given.find(stored.name);
  if (found == given.end()) {
    place.fail(
        fmt::format("has no data: the program was exported with sizes only (FakeTensorMode "
                    "or the meta device); give the {}s as a safetensors file, or export a "
                    "model that has them",
                    kind));
  }
  const at::Tensor& tensor = found->second;
  if (tensor.sizes() != extents.sizes || tensor.scalar_type() != extents.dtype) {
    place.fail(fmt::format("is {} [{}], but the one given for it is {} [{}]",
                           c10::toString(extents.dtype), fmt::join(extents.sizes, ", "),
                           c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", ")));
  }
  return tensor;
}

}  // namespace

std::vector<StoredTensor> read_config(std::string_view json, std::string_view kind,
                                      const Place& place) {
  const Json root = parse_json(json, place);
  std::vector<StoredTensor> stored;
  for (const auto& item : object_member(root, "config", place).items()) {
    const Place at = place.within(fmt::format("{} '{}'", kind, printable(item.key())));
    const Json& payload = item.value();
    const Json* meta = optional_member(payload, "tensor_meta", at);
    // An object of Python or TorchScript: a program that uses it has been rejected.
    if (meta == nullptr && kind == "constant") continue;
    if (meta == nullptr) at.fail("is a pickled object, not a tensor, which is not read");
    if (boolean_member(payload, "use_pickle", at)) {
      at.fail("is pickled (a subclass of Tensor), which is not read; export a plain tensor");
    }
    stored.push_back({.name = item.key(),
                      .storage = text_member(payload, "path_name", at),
                      .is_parameter = boolean_member(payload, "is_param", at),
                      .meta = read_tensor_meta(*meta, at)});
  }
  return stored;
}

std::vector<ArchivedTensor> load_tensors(const std::vector<StoredTensor>& stored,
                                         const std::map<std::string, std::string_view>& bytes,
                                         const NamedTensors& given, std::string_view kind,
                                         const Place& place, bool is_definition) {
  std::unordered_map<std::string, at::Tensor> given_by_name;
  for (const NamedTensor& item : given) given_by_name.emplace(item.name, item.tensor);
  int64_t allowed = kMaxExtraBytes;
  for (const auto& [name, content] : bytes) allowed += static_cast<int64_t>(content.size());

  std::vector<ArchivedTensor> tensors;
  // Tied weights have the same memory and meta, or were given as one tensor.
  std::map<std::tuple<std::string, Extents, bool, bool>, size_t> by_memory;
  std::map<const void*, size_t> by_given;
  for (const StoredTensor& each : stored) {
    const Place at = place.within(fmt::format("{} '{}'", kind, printable(each.name)));
    const Extents extents = extents_of(each.meta, at);
    const std::string_view storage = bytes.at(each.storage);
    const int64_t needed = bytes_of(extents, at);
    size_t index = tensors.size();
    at::Tensor tensor;
    if (needed == 0) {
      tensor = at::empty(extents.sizes, extents.dtype);
    } else if (storage.empty() && !is_definition) {
      tensor = given_tensor(each, extents, given_by_name, kind, at);
      index = by_given.try_emplace(tensor.unsafeGetTensorImpl(), index).first->second;
    } else {
      index = by_memory
                  .try_emplace({each.storage, extents, each.is_parameter, each.meta.requires_grad},
                               index)
                  .first->second;
      if (index == tensors.size() && is_definition) {
        tensor = empty_of(extents).zero_();
      } else if (index == tensors.size()) {
        allowed -= needed;
        if (allowed < 0) {
          at.fail(
              "overlaps with others in the archive, or is expanded, to over 1 GiB; make it "
              "contiguous before the export");
        }
        tensor = copy_of(extents, storage, at);
      }
    }
    if (index < tensors.size()) {
      tensors[index].names.push_back(each.name);
      continue;
    }
    tensors.push_back({.names = {each.name},
                       .tensor = std::move(tensor),
                       .is_parameter = each.is_parameter,
                       .requires_grad = each.meta.requires_grad});
  }
  return tensors;
}

}  // namespace gallop::model::exported
