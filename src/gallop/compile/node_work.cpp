#include "gallop/compile/node_work.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "gallop/compile/graph.h"

namespace gallop::compile {

namespace {

// The arguments and results of a call.
class Call {
 public:
  Call(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  bool has(size_t argument) const { return view_of(argument) != kNone; }
  const View& operator[](size_t argument) const { return graph_.views[view_of(argument)]; }
  double numel(size_t argument) const { return static_cast<double>((*this)[argument].numel()); }
  // From the end if `dim` is negative.
  double size(size_t argument, int64_t dim) const {
    const auto& sizes = (*this)[argument].sizes;
    const auto count = static_cast<int64_t>(sizes.size());
    return static_cast<double>(sizes[static_cast<size_t>(dim < 0 ? dim + count : dim)]);
  }
  bool flag(size_t argument) const {
    const auto& constant = node_.arguments[argument].constant;
    return constant.isBool() && constant.toBool();
  }
  bool flag_of_list(size_t argument, size_t index) const {
    const auto& constant = node_.arguments[argument].constant;
    return constant.isBoolList() && constant.toBoolList()[index];
  }
  // A number or a list of them.
  std::vector<int64_t> numbers(size_t argument) const {
    const auto& constant = node_.arguments[argument].constant;
    if (constant.isInt()) return {constant.toInt()};
    return constant.isIntList() ? constant.toIntVector() : std::vector<int64_t>{1};
  }
  const View* result() const {
    for (const Operand& operand : node_.results) {
      for (const ViewId view : operand.views) {
        if (view != kNone) return &graph_.views[view];
      }
    }
    return nullptr;
  }
  double result_numel() const {
    const View* made = result();
    return made == nullptr ? 0 : static_cast<double>(made->numel());
  }

 private:
  ViewId view_of(size_t argument) const {
    if (argument >= node_.arguments.size()) return kNone;
    const auto& views = node_.arguments[argument].views;
    return views.empty() ? kNone : views.front();
  }

  const Graph& graph_;
  const Node& node_;
};

// The number of inputs of an output of a convolution with this weight: [outputs, inputs, ...].
double window(const View& weight) {
  return static_cast<double>(weight.numel()) / static_cast<double>(weight.sizes.front());
}

// The share of the products of attention that a causal mask leaves, for as many keys as queries.
double visible(double tokens) { return (tokens + 1) / (2 * tokens); }

// Queries [.., T, D], keys and values [.., S, D].
double attention(const Call& call, size_t query) {
  const double depths = call.size(query, -1) + call.size(query + 2, -1);
  return 2 * call.numel(query) / call.size(query, -1) * call.size(query + 1, -2) * depths;
}

// Ours: queries, keys and values in one [B, T, 3, H, D].
double packed_attention(const Call& call, size_t qkv) {
  return 4 * call.numel(qkv) / 3 * call.size(qkv, 1);
}

double causal(const Call& call, size_t query, size_t flag) {
  return call.flag(flag) ? visible(call.size(query, -2)) : 1;
}
double packed_causal(const Call& call, size_t qkv, size_t flag) {
  return call.flag(flag) ? visible(call.size(qkv, 1)) : 1;
}

// The share of the products of a convolution that are not with its padding: of images
// [N, C, ...], outputs [N, C, ...] and a weight [.., .., ...].
double unpadded(const View& input, const View& output, const View& weight,
                const std::vector<int64_t>& strides, const std::vector<int64_t>& paddings,
                const std::vector<int64_t>& dilations) {
  const auto of_dim = [](const std::vector<int64_t>& values, size_t dim) {
    return values.size() == 1 ? values.front() : values[dim];
  };
  double share = 1;
  for (size_t dim = 0; dim + 2 < input.sizes.size(); ++dim) {
    const int64_t from = input.sizes[dim + 2], to = output.sizes[dim + 2];
    const int64_t taps = weight.sizes[dim + 2];
    int64_t inside = 0;
    for (int64_t i = 0; i < to; ++i) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at =
            i * of_dim(strides, dim) - of_dim(paddings, dim) + tap * of_dim(dilations, dim);
        inside += at >= 0 && at < from ? 1 : 0;
      }
    }
    share *= static_cast<double>(inside) / static_cast<double>(std::max<int64_t>(1, to * taps));
  }
  return share;
}

// For LibTorch's, with lists from argument `first`: stride, padding, dilation, and `transposed`.
double unpadded(const Call& call, size_t input, const View& output, size_t weight, size_t first) {
  if (call.flag(first + 3)) return 1;
  return unpadded(call[input], output, call[weight], call.numbers(first), call.numbers(first + 1),
                  call.numbers(first + 2));
}

// For ours, with numbers from argument `first`: stride and padding.
double unpadded(const Call& call, const View& input, const View& output, const View& weight,
                size_t first) {
  return unpadded(input, output, weight, call.numbers(first), call.numbers(first + 1), {1});
}

double all(const Call& /*call*/) { return 1; }

double convolution(const Call& call, double outputs, double inputs, size_t weight,
                   bool transposed) {
  return 2 * (transposed ? inputs : outputs) * window(call[weight]);
}

struct Formula {
  std::string_view op;
  size_t factor;  // The argument whose format counts.
  double (*flops)(const Call& call);
  double (*needed)(const Call& call) = all;  // The share of them; see NodeWork::needed_flops.
};

constexpr std::array kFormulas = {
    Formula{"aten::mm", 1, [](const Call& c) { return 2 * c.numel(0) * c.size(1, -1); }},
    Formula{"aten::addmm", 2, [](const Call& c) { return 2 * c.numel(1) * c.size(2, -1); }},
    Formula{"aten::bmm", 1, [](const Call& c) { return 2 * c.numel(0) * c.size(1, -1); }},
    Formula{"aten::baddbmm", 2, [](const Call& c) { return 2 * c.numel(1) * c.size(2, -1); }},
    Formula{"aten::addbmm", 2, [](const Call& c) { return 2 * c.numel(1) * c.size(2, -1); }},
    Formula{"aten::mv", 1, [](const Call& c) { return 2 * c.numel(0); }},
    Formula{"aten::addmv", 2, [](const Call& c) { return 2 * c.numel(1); }},
    Formula{"aten::dot", 1, [](const Call& c) { return 2 * c.numel(0); }},
    Formula{"aten::addr", 2, [](const Call& c) { return 2 * c.numel(0); }},
    Formula{"aten::_scaled_mm", 1, [](const Call& c) { return 2 * c.numel(0) * c.size(1, -1); }},
    Formula{
        "aten::convolution", 1,
        [](const Call& c) { return convolution(c, c.result_numel(), c.numel(0), 1, c.flag(6)); },
        [](const Call& c) { return unpadded(c, 0, *c.result(), 1, 3); }},
    Formula{"aten::convolution_backward", 2,
            [](const Call& c) {
              const double one = convolution(c, c.numel(0), c.numel(1), 2, c.flag(7));
              return one * ((c.flag_of_list(10, 0) ? 1 : 0) + (c.flag_of_list(10, 1) ? 1 : 0));
            },
            [](const Call& c) { return unpadded(c, 1, c[0], 2, 4); }},
    Formula{
        "aten::mkldnn_rnn_layer", 1,
        [](const Call& c) { return 2 * c.size(0, 0) * c.size(0, 1) * (c.numel(1) + c.numel(2)); }},
    Formula{
        "aten::mkldnn_rnn_layer_backward", 1,
        [](const Call& c) { return 4 * c.size(0, 0) * c.size(0, 1) * (c.numel(1) + c.numel(2)); }},
    Formula{"gallop::conv2d", 1, [](const Call& c) { return 2 * c.result_numel() * window(c[1]); },
            [](const Call& c) { return unpadded(c, c[0], *c.result(), c[1], 3); }},
    Formula{"gallop::conv2d_dgrad", 1, [](const Call& c) { return 2 * c.numel(0) * window(c[1]); },
            [](const Call& c) { return unpadded(c, *c.result(), c[0], c[1], 4); }},
    Formula{"gallop::conv2d_wgrad", 1,
            [](const Call& c) { return 2 * c.numel(0) * window(*c.result()); },
            [](const Call& c) { return unpadded(c, c[1], c[0], *c.result(), 4); }},
    Formula{"gallop::depthwise_conv2d_dgrad", 1,
            [](const Call& c) { return 2 * c.numel(0) * window(c[1]); },
            [](const Call& c) { return unpadded(c, *c.result(), c[0], c[1], 4); }},
    Formula{"gallop::depthwise_conv2d_wgrad", 1,
            [](const Call& c) { return 2 * c.numel(0) * window(*c.result()); },
            [](const Call& c) { return unpadded(c, c[1], c[0], *c.result(), 4); }},
    Formula{"gallop::linear", 1, [](const Call& c) { return 2 * c.numel(0) * c.size(1, 0); }},
    Formula{"gallop::linear_backward", 3,
            [](const Call& c) {
              return 2 * c.numel(0) * c.size(2, -1) * ((c.flag(4) ? 1 : 0) + (c.flag(5) ? 1 : 0));
            }},
    Formula{"gallop::linear_gemm", 1,
            [](const Call& c) { return 2 * c.numel(0) * c.numel(1) / c.size(0, -1); }},
    Formula{"gallop::linear_wgrad", 1,
            [](const Call& c) { return 2 * c.numel(0) * c.size(1, -1); }},
    Formula{"gallop::linear_cross_entropy", 1,
            [](const Call& c) {
              return 2 * c.numel(0) * c.size(1, 0) *
                     (1 + (c.flag(5) ? 1 : 0) + (c.flag(6) ? 1 : 0));
            }},
    Formula{"gallop::attention", 0, [](const Call& c) { return packed_attention(c, 0); },
            [](const Call& c) { return packed_causal(c, 0, 1); }},
    Formula{"gallop::attention_backward", 1,
            [](const Call& c) { return 2 * packed_attention(c, 1); },
            [](const Call& c) { return packed_causal(c, 1, 4); }},
    Formula{"aten::_scaled_dot_product_flash_attention_for_cpu", 1,
            [](const Call& c) { return attention(c, 0); },
            [](const Call& c) { return causal(c, 0, 4); }},
    Formula{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", 1,
            [](const Call& c) { return 2 * attention(c, 1); },
            [](const Call& c) { return causal(c, 1, 7); }},
    Formula{"aten::_scaled_dot_product_flash_attention", 1,
            [](const Call& c) { return attention(c, 0); },
            [](const Call& c) { return causal(c, 0, 4); }},
    Formula{"aten::_scaled_dot_product_flash_attention_backward", 1,
            [](const Call& c) { return 2 * attention(c, 1); },
            [](const Call& c) { return causal(c, 1, 11); }},
    Formula{"aten::_scaled_dot_product_efficient_attention", 1,
            [](const Call& c) { return attention(c, 0); },
            [](const Call& c) { return causal(c, 0, 6); }},
    Formula{"aten::_scaled_dot_product_efficient_attention_backward", 1,
            [](const Call& c) { return 2 * attention(c, 1); },
            [](const Call& c) { return causal(c, 1, 11); }},
    Formula{"aten::_scaled_dot_product_cudnn_attention", 1,
            [](const Call& c) { return attention(c, 0); },
            [](const Call& c) { return causal(c, 0, 6); }},
    Formula{"aten::_scaled_dot_product_cudnn_attention_backward", 1,
            [](const Call& c) { return 2 * attention(c, 1); },
            [](const Call& c) { return causal(c, 1, 14); }},
};

const Formula* formula_of(const Node& node) {
  const std::string& name = node.op.schema().name();
  const auto* found = std::find_if(kFormulas.begin(), kFormulas.end(),
                                   [&](const Formula& formula) { return formula.op == name; });
  return found == kFormulas.end() ? nullptr : found;
}

}  // namespace

NodeWork work_of(const Graph& graph, const Node& node) {
  NodeWork work;
  struct Seen {
    bool read = false, written = false;
  };
  std::map<ViewId, Seen> seen;
  for (const Access& access : accesses_of(node)) {
    Seen& one = seen[access.view];
    one.read = one.read || access.reads;
    one.written = one.written || access.writes;
  }
  for (const auto& [id, how] : seen) {
    const View& view = graph.views[id];
    const auto bytes =
        static_cast<double>(view.numel()) * static_cast<double>(c10::elementSize(view.dtype));
    work.bytes += bytes * ((how.read ? 1 : 0) + (how.written ? 1 : 0));
  }
  if (const Formula* formula = formula_of(node)) {
    const Call call(graph, node);
    if (call.has(formula->factor)) {
      work.flops = formula->flops(call);
      work.needed_flops = work.flops * formula->needed(call);
      work.format = call[formula->factor].dtype;
    }
  }
  return work;
}

}  // namespace gallop::compile
