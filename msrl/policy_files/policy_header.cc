#include "msrl/policy_files/policy_header.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "msrl/core/check.h"

namespace msrl {
namespace {

// Fewest digits that are read back as the same float; C wants a point and an f.
std::string FloatText(float value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  std::string out(text.data(), end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out + "f";
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Text in a comment must not end it.
std::string CommentText(std::string text) {
  for (char& c : text) {
    if (std::isprint(static_cast<unsigned char>(c)) == 0 || c == '*') c = '?';
  }
  return text;
}

// `values` row by row.
std::string Array(const std::string& name, const ConstMatrixRef& values) {
  std::string out = StrCat("static const float ", name, "[", values.size(), "] = {");
  std::size_t line = 100;
  for (Eigen::Index i = 0; i < values.rows(); ++i) {
    for (Eigen::Index j = 0; j < values.cols(); ++j) {
      const std::string number = FloatText(values(i, j));
      if (line + number.size() + 2 > 99) {
        out += "\n   ";
        line = 3;
      }
      out += StrCat(" ", number, ",");
      line += number.size() + 2;
    }
  }
  return out + "\n};\n";
}

bool IsUsed(const FeedForwardPolicy& policy, Activation activation) {
  return std::ranges::any_of(
      policy.layers, [&](const FeedForwardLayer& layer) { return layer.activation == activation; });
}

// The body of a loop over x[i].
std::string_view ActivationCode(Activation activation) {
  switch (activation) {
    case Activation::kIdentity:
      return "";
    case Activation::kRelu:
      return "x[i] = x[i] > 0.0f ? x[i] : 0.0f;";
    case Activation::kTanh:
      return "x[i] = tanhf(x[i]);";
    case Activation::kElu:
      return "x[i] = x[i] > 0.0f ? x[i] : expm1f(x[i]);";
    case Activation::kSilu:
      return "x[i] = x[i] / (1.0f + expf(-x[i]));";
    case Activation::kMish:
      return "x[i] = x[i] * tanhf((x[i] > 0.0f ? x[i] : 0.0f) + log1pf(expf(-fabsf(x[i]))));";
  }
  return "";
}

// The functions that the layers of this policy call.
std::string Functions(const FeedForwardPolicy& policy, const std::string& name) {
  std::string out = StrCat(
      "/* y = W x + b, W row by row */\n"
      "static inline void ",
      name,
      "_linear(const float* w, const float* b, int in, int out, const float* x, float* y) {\n"
      "  for (int i = 0; i < out; ++i) {\n"
      "    float sum = 0.0f;\n"
      "    for (int j = 0; j < in; ++j) sum += w[i * in + j] * x[j];\n"
      "    y[i] = sum + b[i];\n"
      "  }\n"
      "}\n\n");
  if (std::ranges::any_of(policy.layers, &FeedForwardLayer::has_norm)) {
    out += StrCat(
        "/* x = (x - mean) / sqrt(variance + epsilon) * scale + shift */\n"
        "static inline void ",
        name,
        "_norm(const float* scale, const float* shift, int size, float* x) {\n"
        "  float mean = 0.0f, variance = 0.0f;\n"
        "  for (int i = 0; i < size; ++i) mean += x[i];\n"
        "  mean /= (float)size;\n"
        "  for (int i = 0; i < size; ++i) variance += (x[i] - mean) * (x[i] - mean);\n"
        "  variance /= (float)size;\n"
        "  const float factor = 1.0f / sqrtf(variance + ",
        FloatText(MlpFunction::kNormEpsilon),
        ");\n"
        "  for (int i = 0; i < size; ++i) x[i] = (x[i] - mean) * factor * scale[i] + shift[i];\n"
        "}\n\n");
  }
  for (const Activation activation : {Activation::kRelu, Activation::kTanh, Activation::kElu,
                                      Activation::kSilu, Activation::kMish}) {
    if (!IsUsed(policy, activation)) continue;
    out += StrCat("static inline void ", name, "_", ActivationName(activation),
                  "(int size, float* x) {\n  for (int i = 0; i < size; ++i) ",
                  ActivationCode(activation), "\n}\n\n");
  }
  if (std::ranges::any_of(policy.layers,
                          [](const FeedForwardLayer& layer) { return layer.softmax_group > 0; })) {
    out += StrCat(
        "/* every group of x becomes positive numbers with the sum one */\n"
        "static inline void ",
        name,
        "_softmax(int size, int group, float* x) {\n"
        "  for (int first = 0; first < size; first += group) {\n"
        "    float largest = x[first], sum = 0.0f;\n"
        "    for (int i = first; i < first + group; ++i) {\n"
        "      if (x[i] > largest) largest = x[i];\n"
        "    }\n"
        "    for (int i = first; i < first + group; ++i) {\n"
        "      x[i] = expf(x[i] - largest);\n"
        "      sum += x[i];\n"
        "    }\n"
        "    for (int i = first; i < first + group; ++i) x[i] /= sum;\n"
        "  }\n"
        "}\n\n");
  }
  return out;
}

// The calls of one layer, from `from` to `to`.
std::string LayerCalls(const FeedForwardLayer& layer, const std::string& name, std::size_t index,
                       std::string_view from, std::string_view to) {
  const std::string of = StrCat("_", index);
  std::string out =
      StrCat("  ", name, "_linear(", name, "_weight", of, ", ", name, "_bias", of, ", ",
             layer.weight.cols(), ", ", layer.weight.rows(), ", ", from, ", ", to, ");\n");
  if (layer.has_norm()) {
    out += StrCat("  ", name, "_norm(", name, "_scale", of, ", ", name, "_shift", of, ", ",
                  layer.weight.rows(), ", ", to, ");\n");
  }
  if (layer.activation != Activation::kIdentity) {
    out += StrCat("  ", name, "_", ActivationName(layer.activation), "(", layer.weight.rows(), ", ",
                  to, ");\n");
  }
  if (layer.softmax_group > 0) {
    out += StrCat("  ", name, "_softmax(", layer.weight.rows(), ", ", layer.softmax_group, ", ", to,
                  ");\n");
  }
  return out;
}

// name_outputs: the layers one after the other, between two buffers.
std::string OutputsFunction(const FeedForwardPolicy& policy, const std::string& name) {
  Eigen::Index widest = policy.observation_size();
  for (const FeedForwardLayer& layer : policy.layers) {
    widest = std::max(widest, layer.weight.rows());
  }
  const std::array<std::string_view, 2> buffers{"a", "b"};
  const bool hidden = policy.layers.size() > 1;
  std::string out =
      StrCat("/* What the network says: before the action is chosen. */\n", "static inline void ",
             name, "_outputs(const float* observation, float* outputs) {\n");
  std::string_view now = "observation";
  if (policy.normalises()) {
    const std::string limit = FloatText(policy.limit);
    out += StrCat("  float o[", policy.observation_size(), "];\n");
    out += StrCat("  for (int i = 0; i < ", policy.observation_size(), "; ++i) {\n", "    o[i] = (",
                  "observation[i] - ", name, "_offset[i]) * ", name, "_factor[i];\n",
                  "    o[i] = o[i] < -", limit, " ? -", limit, " : o[i] > ", limit, " ? ", limit,
                  " : o[i];\n  }\n");
    now = "o";
  }
  if (hidden) out += StrCat("  float a[", widest, "];\n");
  if (policy.layers.size() > 2) out += StrCat("  float b[", widest, "];\n");
  for (std::size_t l = 0; l < policy.layers.size(); ++l) {
    const bool last = l + 1 == policy.layers.size();
    const std::string_view next = last ? "outputs" : buffers[l % 2];
    out += LayerCalls(policy.layers[l], name, l, now, next);
    now = next;
  }
  return out + "}\n\n";
}

std::string ActionFunction(const FeedForwardPolicy& policy, const std::string& name) {
  const int size = policy.output_size();
  std::string out =
      StrCat("static inline void ", name, "(const float* observation, float* action) {\n");
  if (policy.discrete) {
    return out + StrCat("  float outputs[", size, "];\n  int best = 0;\n  ", name,
                        "_outputs(observation, outputs);\n", "  for (int i = 1; i < ", size,
                        "; ++i) {\n    if (outputs[i] > outputs[best]) best = i;\n  }\n",
                        "  action[0] = (float)best;\n}\n\n");
  }
  return out + StrCat("  ", name, "_outputs(observation, action);\n  for (int i = 0; i < ", size,
                      "; ++i) {\n    action[i] = action[i] < -1.0f ? -1.0f : action[i] > 1.0f ? "
                      "1.0f : action[i];\n  }\n}\n\n");
}

std::string SelfTestFunction(const ExportedPolicy& exported, const std::string& name) {
  const FeedForwardPolicy& policy = exported.policy;
  return StrCat(
      Array(name + "_test_observations", exported.observations.transpose()), "\n",
      Array(name + "_test_actions", exported.actions.transpose()), "\n",
      "/* The largest difference from what the agent itself did in a few observations: about 1e-6. "
      "*/\nstatic inline float ",
      name, "_self_test(void) {\n  float action[", policy.action_size(),
      "], worst = 0.0f;\n  for (int k = 0; k < ", exported.actions.cols(), "; ++k) {\n    ", name,
      "(", name, "_test_observations + k * ", policy.observation_size(),
      ", action);\n    for (int i = 0; i < ", policy.action_size(),
      "; ++i) {\n      const float d = fabsf(action[i] - ", name, "_test_actions[k * ",
      policy.action_size(),
      " + i]);\n      if (!(d <= worst)) worst = d;\n    }\n  }\n  return worst;\n}\n\n");
}

void RequireName(const std::string& name) {
  const bool good =
      !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (!good) {
    throw UserError(
        StrCat("'", name, "' is no name for a function of C: letters, digits and _ only"));
  }
}

}  // namespace

std::string PolicyHeader(const ExportedPolicy& exported, const std::string& name) {
  RequireName(name);
  const FeedForwardPolicy& policy = exported.policy;
  const std::string prefix = Upper(name);
  std::string out =
      StrCat("/* The policy of agent ", CommentText(exported.agent), " in ",
             CommentText(exported.env), ", written by msrl ", CommentText(exported.version),
             ".\n\n   ", name, "(observation, action) fills in the action of an observation of ",
             policy.observation_size(), " numbers.\n   ",
             policy.discrete
                 ? StrCat("action[0] is the index of one of ", policy.output_size(), " actions")
                 : StrCat("The action has ", policy.output_size(), " numbers in [-1, 1]"),
             ". C99 and math.h, no allocation, no state. */\n#ifndef ", prefix, "_H_\n#define ",
             prefix, "_H_\n\n#include <math.h>\n\n#define ", prefix, "_OBSERVATION_SIZE ",
             policy.observation_size(), "\n#define ", prefix, "_OUTPUT_SIZE ", policy.output_size(),
             "\n#define ", prefix, "_ACTION_SIZE ", policy.action_size(), "\n\n");
  if (policy.normalises()) {
    out += Array(name + "_offset", policy.offset) + Array(name + "_factor", policy.factor);
  }
  for (std::size_t l = 0; l < policy.layers.size(); ++l) {
    const FeedForwardLayer& layer = policy.layers[l];
    out += Array(StrCat(name, "_weight_", l), layer.weight);
    out += Array(StrCat(name, "_bias_", l), layer.bias);
    if (!layer.has_norm()) continue;
    out += Array(StrCat(name, "_scale_", l), layer.norm_scale);
    out += Array(StrCat(name, "_shift_", l), layer.norm_shift);
  }
  out += "\n";
  out += Functions(policy, name) + OutputsFunction(policy, name) + ActionFunction(policy, name) +
         SelfTestFunction(exported, name);
  return out + StrCat("#endif /* ", prefix, "_H_ */\n");
}

}  // namespace msrl
