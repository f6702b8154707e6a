#include <algorithm>
#include <limits>
#include <optional>
#include <variant>

#include "gallop/model/exported/node_sharder.h"

namespace gallop::model::exported {

namespace {

// Between the same elements in other dimensions: those of the input from `begin` to `end` become
// those of the result from `first` to `last`.
struct Segment {
  size_t begin = 0, end = 0, first = 0, last = 0;
};

// The smallest segment with the dimension; nothing if sizes are unknown.
std::optional<Segment> segment_of(size_t dim, const std::vector<Size>& in,
                                  const std::vector<Size>& out) {
  Segment segment;
  while (segment.begin < in.size()) {
    segment.end = segment.begin;
    segment.last = segment.first;
    int64_t of_in = 1, of_out = 1;
    do {
      const bool takes_in = segment.end == segment.begin || of_in <= of_out;
      if (takes_in && segment.end < in.size()) {
        if (!in[segment.end].hint) return std::nullopt;
        of_in *= *in[segment.end++].hint;
      } else if (segment.last < out.size()) {
        if (!out[segment.last].hint) return std::nullopt;
        of_out *= *out[segment.last++].hint;
      } else {
        return std::nullopt;
      }
    } while (of_in != of_out || segment.last == segment.first);
    if (dim < segment.end) return segment;
    segment.begin = segment.end;
    segment.first = segment.last;
  }
  return std::nullopt;
}

}  // namespace

bool NodeSharder::along(const Shard& shard) {
  const char* const name = node_.function == "aten::flip" ? "dims" : "dim";
  const auto dims = dims_argument(name);
  if (!dims) return false;
  if (std::count(dims->begin(), dims->end(), shard.dim) > 0) {
    return fail("computes along the divided dimension");
  }
  return set_results(shard);
}

bool NodeSharder::reduced(const Shard& shard) {
  const auto dims = dims_argument("dim");
  if (!dims) return false;
  if (dims->empty() || std::count(dims->begin(), dims->end(), shard.dim) > 0) {
    return fail("reduces the divided dimension");
  }
  const Argument* const keeps = find_argument(node_, "keepdim");
  const bool keeps_dims = keeps != nullptr && *keeps == Argument(true);
  const auto before =
      std::count_if(dims->begin(), dims->end(), [&](int64_t dim) { return dim < shard.dim; });
  return set_results({keeps_dims ? shard.dim : shard.dim - before, shard.group});
}

bool NodeSharder::normalized(const Shard& shard) {
  const Argument* const shape = find_argument(node_, "normalized_shape");
  const auto* const dims = shape == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(shape);
  if (dims == nullptr || shard.dim >= rank() - static_cast<int64_t>(dims->size())) {
    return fail("normalizes along the divided dimension");
  }
  for (size_t i = 1; i < operands_.size(); ++i) result_.copied.insert(operands_[i]);
  return set_results(shard);
}

// `sizes` is the argument with the sizes of the result from dimension `from` on, if there is one.
// In the order of memory, parts are equally long pieces of equally long blocks. That is so before
// and after, with a dimension that has a whole number of pieces.
bool NodeSharder::reshaped(const Shard& shard, const char* sizes, int64_t from) {
  const auto& in = sizes_of(operands_.front());
  const auto& out = sizes_of(results().front());
  const auto segment = segment_of(static_cast<size_t>(shard.dim), in, out);
  if (!segment) return fail("has sizes that vary");
  int64_t block = shard.group;
  for (size_t i = static_cast<size_t>(shard.dim) + 1; i < segment->end; ++i) {
    if (constant_of(in[i]) < 1) return fail("has sizes that vary");
    block *= constant_of(in[i]);
  }
  int64_t piece = 1;
  for (size_t i = segment->last; i-- > segment->first && block % piece == 0;) {
    const int64_t group = block / piece, size = constant_of(out[i]);
    const bool fits = size > 0 ? size % group == 0 : i == segment->first;
    if (fits && group > 1) {
      if (!divides(group)) return fail_to_divide(group);
      if (*sizes != 0 && !divide_entry(sizes, static_cast<int64_t>(i) - from)) return false;
      return set_results({static_cast<int64_t>(i), group});
    }
    if (size < 1) break;
    piece *= size;
  }
  return fail("would spread each part over several dimensions of the result");
}

bool NodeSharder::expanded(const Shard& shard) {
  const int64_t dim = shard.dim + rank_of(graph_, results().front()) - rank();
  return divide_entry("size", dim) && set_results({dim, shard.group});
}

// Copies of the divided dimension are further groups.
bool NodeSharder::repeated(const Shard& shard) {
  const int64_t dim = shard.dim + rank_of(graph_, results().front()) - rank();
  return set_results({dim, shard.group});
}

bool NodeSharder::interleaved(const Shard& shard) {
  const auto dim = dim_argument("dim", rank()), repeats = int_argument("repeats", {});
  if (!dim || !repeats) return false;
  if (*dim != shard.dim) return set_results(shard);
  if (find_argument(node_, "output_size") != nullptr) return fail("needs whole tensors");
  return set_results({shard.dim, shard.group * *repeats});
}

bool NodeSharder::transposed(const Shard& shard, const char* one_name, const char* other_name) {
  const auto one = dim_argument(one_name, rank()), other = dim_argument(other_name, rank());
  if (!one || !other) return false;
  const int64_t dim = shard.dim == *one ? *other : shard.dim == *other ? *one : shard.dim;
  return set_results({dim, shard.group});
}

bool NodeSharder::permuted(const Shard& shard) {
  const auto dims = dims_argument("dims");
  if (!dims) return false;
  const auto found = std::find(dims->begin(), dims->end(), shard.dim);
  if (found == dims->end()) return fail("needs whole tensors");
  return set_results({found - dims->begin(), shard.group});
}

bool NodeSharder::unsqueezed(const Shard& shard) {
  const auto dim = dim_argument("dim", rank() + 1);
  return dim && set_results({shard.dim + (*dim <= shard.dim ? 1 : 0), shard.group});
}

bool NodeSharder::squeezed(const Shard& shard) {
  int64_t dim = shard.dim;
  const auto dims = dims_argument("dim");
  if (!dims) return false;
  if (dims->empty()) return fail("needs all sizes");
  for (const int64_t one : *dims) {
    if (one == shard.dim) return fail("squeezes the divided dimension");
    if (one < shard.dim && size_of(operands_.front(), one) == 1) dim -= 1;
  }
  return set_results({dim, shard.group});
}

// select() and unbind(), which remove a dimension.
bool NodeSharder::selected(const Shard& shard) {
  const auto dim = dim_argument("dim", rank(), 0);
  if (!dim) return false;
  if (*dim == shard.dim) return fail("selects from the divided dimension");
  return set_results({shard.dim - (*dim < shard.dim ? 1 : 0), shard.group});
}

bool NodeSharder::sliced(const Shard& shard) {
  const auto dim = dim_argument("dim", rank(), 0);
  if (!dim) return false;
  if (*dim != shard.dim) return set_results(shard);
  const int64_t size = size_of(operands_.front(), shard.dim);
  const auto start = int_argument("start", 0), step = int_argument("step", 1);
  const auto end = int_argument("end", std::numeric_limits<int64_t>::max());
  if (!start || !end || !step) return false;
  if (size < 0) return fail("has a size that varies along the divided dimension");
  const auto place = [size](int64_t index) {
    return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const int64_t from = place(*start), to = place(*end);
  if (*step != 1 || from % shard.group != 0 || to % shard.group != 0) {
    return fail("slices the divided dimension");
  }
  set_argument("start", from / processes_);
  set_argument("end", to / processes_);
  return set_results(shard);
}

// chunk() and split() give the groups of the divided dimension.
bool NodeSharder::split(const Shard& shard) {
  const auto dim = dim_argument("dim", rank(), 0);
  if (!dim) return false;
  if (*dim != shard.dim) return set_results(shard);
  for (const std::string& piece : results()) {
    const int64_t size = size_of(piece, shard.dim);
    if (size < 0 || size % shard.group != 0) return fail("splits the divided dimension");
  }
  for (NamedArgument& input : result_.node.inputs) {
    if (!input.name.starts_with("split_size")) continue;
    if (auto* const one = std::get_if<int64_t>(&input.value)) *one /= processes_;
    if (auto* const list = std::get_if<std::vector<int64_t>>(&input.value)) {
      for (int64_t& length : *list) length /= processes_;
    }
  }
  return set_results(shard);
}

// Two halves, of which one is a factor of the other.
bool NodeSharder::gated(const Shard& shard) {
  const auto dim = dim_argument("dim", rank(), -1);
  if (!dim) return false;
  if (*dim != shard.dim) return set_results(shard);
  if (size_of(results().front(), *dim) % shard.group != 0) {
    return fail("splits the divided dimension");
  }
  return set_results(shard);
}

}  // namespace gallop::model::exported
