// Any bytes are a valid file or a UserError; what is read can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "msrl/core/check.h"
#include "msrl/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const msrl::TensorFile file = msrl::TensorFile::Parse(bytes, "input");
    msrl::TensorFileBuilder builder;
    for (const auto& [key, value] : file.metadata()) builder.SetMetadata(key, value);
    for (const msrl::TensorInfo& info : file.tensors()) {
      switch (info.type) {
        case msrl::TensorType::kU8:
          builder.Add(info.name, file.U8(info.name, info.shape), info.shape);
          break;
        case msrl::TensorType::kI64:
          builder.Add(info.name, file.I64(info.name, info.shape), info.shape);
          break;
        case msrl::TensorType::kF32:
          builder.Add(info.name, file.F32(info.name, info.shape), info.shape);
          break;
        case msrl::TensorType::kF64:
          builder.Add(info.name, file.F64(info.name, info.shape), info.shape);
          break;
      }
    }
    const std::string encoded = builder.Encode();
    const msrl::TensorFile again =
        msrl::TensorFile::Parse(std::as_bytes(std::span(encoded)), "again");
    if (!again.has_checksum() || again.tensors().size() != file.tensors().size() ||
        again.metadata() != file.metadata()) {
      std::abort();
    }
  } catch (const msrl::UserError&) {
    // refused: fine
  }
  return 0;
}
