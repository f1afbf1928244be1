//! `record`: the first lane of each warp writes an event with its time.

use rtc_abi::records::{ENTRIES, ENTRY_BYTES, EVENTS, Event, HEADER, Kind, MARKER};
use rtc_ir::{Op, view};

use super::Lowering;
use crate::{
    emit::{AccessAttrs, Cmpi, Value},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    /// The number of events so far is a local variable, for which LLVM takes a register. A branch would end the group of
    /// `wgmma` that is being issued, so that the stores are predicated.
    pub(super) fn record(&self, op: Op, event: &str, blocks: u32) -> Result<()> {
        let e = self.e;
        let event: Event = event.parse().map_err(|error| CodegenError::lowering(format!("{error}")))?;
        let buffer = self.scalar(view::Record::at(self.kernel, op).buffer())?;
        let counter = *self.records.get_or_init(|| e.local(e.ty.i32, 1, 4));
        let word = AccessAttrs { align: 4, ..AccessAttrs::default() };
        let [x, y, z] = ["ctaid.x", "ctaid.y", "ctaid.z"].map(|name| e.special_register(name));
        let [nx, ny] = ["nctaid.x", "nctaid.y"].map(|name| e.special_register(name));
        let block = e.addi(e.muli(e.addi(e.muli(z, ny), y), nx), x);
        let is_first_lane = e.cmpi(Cmpi::Eq, e.andi(e.thread, e.i32(31)), e.i32(0));
        let writes = e.andi(is_first_lane, e.cmpi(Cmpi::Ult, block, e.i32(blocks as i32)));
        let warps = super::threads_per_block(self.kernel) / 32;
        let warp = e.addi(e.muli(block, e.i32(warps as i32)), e.shrui(e.thread, e.i32(5)));
        let entry = |entry: Value<'c>| {
            let number = e.addi(e.muli(warp, e.i32(ENTRIES as i32)), entry);
            e.byte_offset(buffer, e.muli(e.extui(number, e.ty.i64), e.i64(ENTRY_BYTES.into())))
        };
        match event.kind {
            Kind::Start => {
                e.store(e.i32(0), counter, word);
                self.both_clocks(entry(e.i32(1)), writes, &event);
            }
            Kind::Finish => {
                self.both_clocks(entry(e.i32(2)), writes, &event);
                let count = e.extui(e.load(counter, e.ty.i32, word), e.ty.i64);
                e.assembly(
                    "@$2 st.global.b64 [$0], $1;",
                    "l,l,b,~{memory}",
                    &[entry(e.i32(0)), count, writes],
                    &[],
                    true,
                );
            }
            _ => {
                let count = e.load(counter, e.ty.i32, word);
                let is_room = e.cmpi(Cmpi::Ult, count, e.i32(EVENTS as i32));
                let place = entry(e.addi(count, e.i32(HEADER as i32)));
                let text = format!("mov.u64 $0, %clock64; {MARKER}{event}\n\t@$2 st.global.v2.b64 [$1], {{$0, $3}};");
                let operands = [place, e.andi(writes, is_room), e.i64(i64::from(event.number) + 1)];
                e.assembly(&text, "=&l,l,b,l,~{memory}", &operands, &[e.ty.i64], true);
                e.store(e.addi(count, e.i32(1)), counter, word);
            }
        }
        Ok(())
    }

    /// Writes the clock of the SM and that of the GPU.
    fn both_clocks(&self, place: Value<'c>, writes: Value<'c>, event: &Event) {
        let e = self.e;
        let text = format!(
            "mov.u64 $0, %clock64; {MARKER}{event}\n\tmov.u64 $1, %globaltimer;\n\t@$3 st.global.v2.b64 [$2], {{$0, $1}};"
        );
        e.assembly(&text, "=&l,=&l,l,b,~{memory}", &[place, writes], &[e.ty.i64, e.ty.i64], true);
    }
}
